//! Quantised points one after another, and the estimates of the distances of chosen ones.

use crate::level;
use crate::prefetch::prefetch_line;

/// Bytes of one line of a row code.
///
/// The code of a point is a row of whole lines, and the rows of all points follow one another. A line has 16 lanes of
/// four bytes, and a lane the codes of 16 elements, 0 to 3 each: element e of lane L lies in byte `4 * L + e % 4` of
/// the line, in the two bits from bit `2 * (e / 4)` on. The last lane of the last line has no codes but the term of
/// the point, a little-endian f32.
pub const ROW_CODE_LINE: usize = 64;

/// Lanes of one line.
pub(crate) const LINE_LANES: usize = 16;

/// Elements of one lane.
pub(crate) const LANE_ELEMENTS: usize = 16;

/// Elements of one line.
pub(crate) const LINE_ELEMENTS: usize = LINE_LANES * LANE_ELEMENTS;

/// What a query brings to row codes, as [`row_code_weights`] makes it.
///
/// The last lane of the last line must have weights of zero and a finite scale, because the term lies there: anything
/// else adds to the estimates what the bits of the term happen to say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowCodeQuery<'a> {
    /// For each line four planes of 64 weights: byte `4 * L + b` of plane c is the weight of element `4 * c + b` of
    /// lane L.
    pub weights: &'a [i8],
    /// What one unit of the sum of a lane is worth, for every lane of every line.
    pub scales: &'a [f32],
    /// What is added to every estimate.
    pub offset: f32,
}

/// Turns the coordinates of a query into weights and scales for row codes: what a [`RowCodeQuery`] needs but for its
/// offset.
///
/// Lanes are numbered through all lines, and entry `16 * lane + e` of `axes` and `steps` belongs to element e of a
/// lane: its value is the coordinate that the axis names times the step. The weights are these values in units
/// that make the largest one of the lane 127, rounded to even, and the scale is minus twice the unit. Both are
/// zero in a lane whose values are all zero, or where one is too large, or all are too small, to be told; a value
/// that is no number weighs nothing. Steps of zero keep the lane of the term clear.
///
/// Returns the sum, lane after lane, of scale times the sum of the weights. Every instruction set gives the same
/// bits.
///
/// Panics when the axes are no whole number of lines, when a step, a weight or a lane's scale is missing or too
/// many, when an axis is out of range, and when there are more than 2³¹ coordinates.
#[inline]
pub fn row_code_weights(
    coordinates: &[f32],
    axes: &[u32],
    steps: &[f32],
    weights: &mut [i8],
    scales: &mut [f32],
) -> f32 {
    assert!(
        axes.len().is_multiple_of(LINE_ELEMENTS),
        "a line of axes is cut off"
    );
    assert_eq!(axes.len(), steps.len(), "a step for each axis");
    assert_eq!(axes.len(), weights.len(), "a weight for each axis");
    assert_eq!(
        axes.len(),
        scales.len() * LANE_ELEMENTS,
        "a scale for each lane"
    );
    assert!(coordinates.len() <= 1 << 31, "too many coordinates");
    assert!(within(axes, coordinates.len()), "an axis is out of range");
    dispatch!(
        level(),
        row_code_weights(coordinates, axes, steps, weights, scales)
    )
}

/// Row codes of some points, all of the same number of lines.
#[derive(Clone, Copy, Debug)]
pub struct RowCodes<'a> {
    bytes: &'a [u8],
    lines: usize,
    rows: usize,
}

impl<'a> RowCodes<'a> {
    /// Codes of `lines` lines each, laid out as [`ROW_CODE_LINE`] says.
    ///
    /// Panics when there is no line, and when the last code is cut off.
    #[inline]
    pub fn new(bytes: &'a [u8], lines: usize) -> Self {
        assert!(lines > 0, "row codes without a line");
        let rows = bytes.len() / ROW_CODE_LINE / lines;
        assert_eq!(
            rows * lines * ROW_CODE_LINE,
            bytes.len(),
            "a row code is cut off"
        );
        Self { bytes, lines, rows }
    }

    /// Asks for the code of `row`, as [`prefetch`](crate::prefetch) does. Any number is allowed.
    #[inline]
    pub fn prefetch(&self, row: u32) {
        let bytes = self.row_bytes();
        let code = self.bytes.as_ptr().wrapping_add(row as usize * bytes);
        for line in 0..self.lines {
            prefetch_line(code.wrapping_add(line * ROW_CODE_LINE));
        }
    }

    /// Bytes of one code.
    #[inline]
    pub(crate) fn row_bytes(&self) -> usize {
        self.lines * ROW_CODE_LINE
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    #[inline]
    pub(crate) fn row(&self, row: u32) -> &'a [u8] {
        let bytes = self.row_bytes();
        &self.bytes[row as usize * bytes..][..bytes]
    }
}

/// Estimates of chosen rows: `out[i]` is that of row `rows[i]` of `codes`.
///
/// A lane's sum of weight times code, an exact integer, is multiplied with the lane's scale. The products are added
/// line after line for each of the 16 lanes, then lanes i and i + 8, i and i + 4, i and i + 2, and the last two. That
/// total is added to the sum of offset and term. No two of these operations are fused: every instruction set gives
/// the same estimates, bit for bit, but for the bits of what is no number.
///
/// Panics when the query does not fit the lines of the codes, when a row is out of range, and when `out` has not one
/// value for each row.
#[inline]
pub fn estimate_rows(codes: RowCodes<'_>, query: &RowCodeQuery<'_>, rows: &[u32], out: &mut [f32]) {
    check_rows(codes, query, rows, out);
    dispatch!(level(), estimate_rows(codes, query, rows, out));
}

/// Whether all numbers are below `end`.
#[inline]
pub(crate) fn within(numbers: &[u32], end: usize) -> bool {
    // The largest first: a loop without branches.
    let largest = numbers.iter().copied().max();
    largest.is_none_or(|largest| (largest as usize) < end)
}

/// Checks all that [`estimate_rows`] requires.
#[inline]
pub(crate) fn check_rows(codes: RowCodes<'_>, query: &RowCodeQuery<'_>, rows: &[u32], out: &[f32]) {
    assert_eq!(
        query.scales.len(),
        codes.lines * LINE_LANES,
        "a scale for each lane"
    );
    assert_eq!(
        query.weights.len(),
        codes.lines * LINE_ELEMENTS,
        "a weight for each element"
    );
    assert_eq!(rows.len(), out.len(), "an estimate for each row");
    assert!(within(rows, codes.rows), "a row is out of range");
}

/// The factor that makes the largest value of a lane 127, and the lane's scale; nothing where the lane has no
/// weights.
#[inline]
pub(crate) fn lane_units(largest: f32) -> Option<(f32, f32)> {
    let inverse = 127.0 / largest;
    // An infinite value has the inverse zero, and values of zero or too near to it an infinite one.
    (inverse > 0.0 && inverse.is_finite()).then(|| (inverse, -2.0 * (largest / 127.0)))
}
