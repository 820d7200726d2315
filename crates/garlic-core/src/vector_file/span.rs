//! Ranges of a file that are read together.

use std::io;

/// Vectors that are no farther apart than this many bytes are read together: a device reads no less than a page.
pub(super) const MAX_GAP: u64 = 4096;

/// Upper limit of the bytes of a span of more than one vector.
pub(super) const MAX_BYTES: usize = 64 << 10;

/// A range of a file, and its place in the bytes that it is read to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) offset: u64,
    pub(super) len: usize,
    pub(super) place: usize,
}

impl Span {
    /// The end of its place.
    pub(super) fn end(&self) -> usize {
        self.place.saturating_add(self.len)
    }
}

/// The error of a file that ends in a span of which `done` bytes were read.
pub(super) fn too_short(span: Span, done: usize) -> io::Error {
    let (end, needed) = (span.offset + done as u64, span.offset + span.len as u64);
    let message =
        format!("the file ends at byte {end}, vectors are stored up to {needed} or beyond");
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}

/// The spans of the rows `sorted`, in ascending order, of `row_bytes` bytes each, from `start` of the file on. Appends the
/// place of every row to `places`.
pub(super) fn spans_of(
    sorted: impl Iterator<Item = u32>,
    start: u64,
    row_bytes: usize,
    places: &mut Vec<usize>,
) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for row in sorted {
        let offset = start + u64::from(row) * row_bytes as u64;
        if let Some(last) = spans.last_mut() {
            let len = (offset - last.offset) as usize + row_bytes;
            if offset <= last.offset + last.len as u64 + MAX_GAP && len <= MAX_BYTES.max(last.len) {
                places.push(last.place + len - row_bytes);
                last.len = last.len.max(len);
                continue;
            }
        }
        // Places are aligned for all types of values.
        let place = spans
            .last()
            .map_or(0, |last| last.end().next_multiple_of(64));
        places.push(place);
        spans.push(Span {
            offset,
            len: row_bytes,
            place,
        });
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_rows_are_read_together_and_all_are_found() {
        for (row_bytes, gap) in [(128usize, 3u32), (128, 32), (128, 40), (70_000, 1), (5, 1)] {
            let rows: Vec<u32> = (0..300).map(|i| 7 + i / 2 * gap).collect();
            let mut places = Vec::new();
            let spans = spans_of(rows.iter().copied(), 100, row_bytes, &mut places);
            for (row, place) in rows.iter().zip(&places) {
                let offset = 100 + u64::from(*row) * row_bytes as u64;
                let inside = |span: &&Span| {
                    *place >= span.place && *place + row_bytes <= span.place + span.len
                };
                let span = spans.iter().find(inside).unwrap();
                assert_eq!(span.offset + (place - span.place) as u64, offset);
            }
            let together = spans.len() < 150;
            let is_near = (gap as usize - 1) * row_bytes <= 4096 && row_bytes < 4096;
            assert_eq!(together, is_near, "{row_bytes} {gap}");
            assert!(spans.iter().all(|s| s.len <= MAX_BYTES.max(row_bytes)));
            assert!(spans.windows(2).all(|pair| pair[0].end() <= pair[1].place));
        }
    }
}
