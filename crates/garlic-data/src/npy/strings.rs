//! Arrays of text: of code points (`<U8`) or of bytes (`|S8`), filled up with zeros to one width.

use crate::error::{DataError, Result};
use crate::input::{Input, to_usize};

/// The entries of an array of text with one axis, or one column; nothing for an array of anything else.
pub(super) fn read(input: &Input) -> Result<Option<Vec<String>>> {
    let (header, offset) = super::described(input)?;
    let origin = input.origin();
    let name = header.descr.trim_start_matches(['<', '>', '|', '=']);
    let width = |letter: char, bytes: u64| {
        let letters: u64 = name.strip_prefix(letter)?.parse().ok()?;
        Some((letters.checked_mul(bytes)?, bytes == 1))
    };
    let Some((width, is_bytes)) = width('U', 4).or_else(|| width('S', 1)) else {
        return Ok(None);
    };
    if header.descr.starts_with('>') && !is_bytes {
        let dtype = header.descr;
        return Err(DataError::BigEndian { origin, dtype });
    }
    let ([rows] | [rows, 1]) = header.shape[..] else {
        return Err(DataError::BadRank {
            origin,
            found: header.shape.len(),
            expected: 1,
            fix: "(rows,)",
        });
    };
    // Neither of them has an entry to read, however many the header announces.
    if rows == 0 {
        return Err(DataError::ZeroRows { origin });
    }
    if width == 0 {
        return Err(DataError::UnsupportedType {
            origin,
            found: header.descr,
            supported: "text with at least one character",
        });
    }
    input.check_end(offset, rows, width)?;
    let bytes = input.bytes()?;
    let offset = to_usize(offset, "the header's length", &origin)?;
    let entries = bytes.get(offset..).unwrap_or_default();
    let entries = entries.chunks_exact(to_usize(width, "the width of the text", &origin)?);
    let texts = entries.enumerate().map(|(row, entry)| {
        let text = match is_bytes {
            true => of_bytes(entry),
            false => of_code_points(entry),
        };
        text.ok_or_else(|| DataError::BadRow {
            origin: input.origin(),
            place: format!("row {row}"),
            problem: "the identifier is no Unicode text: write it with array.astype('U')"
                .to_owned(),
        })
    });
    texts.collect::<Result<_>>().map(Some)
}

fn of_bytes(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
    std::str::from_utf8(&bytes[..end]).ok().map(str::to_owned)
}

fn of_code_points(bytes: &[u8]) -> Option<String> {
    let points = bytes.as_chunks::<4>().0.iter();
    let text: Option<String> = points
        .map(|p| char::from_u32(u32::from_le_bytes(*p)))
        .collect();
    text.map(|text| text.trim_end_matches('\0').to_owned())
}
