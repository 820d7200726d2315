//! Quantised points in blocks, and the scan that estimates their distances.

use crate::level;

/// Points side by side in a block of codes.
pub const CODE_LANES: usize = 8;

/// Bytes of one row of a block: four bytes, or one f32, for every lane.
pub(crate) const ROW: usize = 4 * CODE_LANES;

/// Most coordinates a code may have: the sums of [`scan_codes`] stay within 32 bits.
pub const MAX_CODE_RANK: usize = 65_536;

/// How many bits the code of one coordinate has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeBits {
    /// Codes 0 to 15, two in a byte.
    Four,
    /// Codes 0 to 127, one in a byte; the eighth bit stays clear so that pairs of products fit 16 bits.
    Eight,
}

impl CodeBits {
    /// The largest code.
    pub const fn largest(self) -> u8 {
        match self {
            Self::Four => 15,
            Self::Eight => 127,
        }
    }

    /// The rank of a code is a multiple of this: the coordinates that one row of a block holds.
    pub const fn rank_step(self) -> usize {
        match self {
            Self::Four => 8,
            Self::Eight => 4,
        }
    }
}

/// Bytes of a block of [`CODE_LANES`] points with `rank` coordinates.
///
/// A block consists of rows of 32 bytes. With eight bits, byte `4 * lane + c` of row g is the code of
/// coordinate `4 * g + c` of point `lane`. With four bits, byte `4 * lane + c` of row p has the code of
/// coordinate `8 * p + c` in its low nibble and that of coordinate `8 * p + 4 + c` in its high nibble. The last
/// row holds the norm term of every point, a little-endian f32; lanes without a point have infinity there and
/// codes of zero.
///
/// Panics when the rank is not a multiple of [`CodeBits::rank_step`].
pub const fn code_block_bytes(bits: CodeBits, rank: usize) -> usize {
    assert!(
        rank.is_multiple_of(bits.rank_step()),
        "the rank is not a multiple of a row of codes"
    );
    rank / bits.rank_step() * ROW + ROW
}

/// What a query brings to the codes of one cell: an estimate is `norm + (offset + scale * sum)`, where `sum` adds
/// weight times code over the coordinates; below zero it is zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeQuery<'a> {
    /// One weight per coordinate, -127 to 127.
    pub weights: &'a [i8],
    /// What one unit of the sum is worth.
    pub scale: f32,
    /// What is added to every estimate.
    pub offset: f32,
}

/// A point whose estimate is below the limit of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(8))]
pub struct Estimate {
    /// The number of the lane: that of the first lane of the scan, and one more for every lane since.
    pub at: u32,
    /// The estimated value, not negative.
    pub estimate: f32,
}

impl Estimate {
    /// Orders by (estimate, at): floats that are not negative are ordered as their bits are.
    #[inline]
    pub fn key(&self) -> u64 {
        u64::from(self.estimate.to_bits()) << 32 | u64::from(self.at)
    }
}

/// Turns a query's coordinates in a cell's frame into weights for its codes: `coordinate * step`, in units that
/// make the largest one 127, rounded to even.
///
/// Returns what one unit is worth and the sum of the weights; both zero when all products are, or when one is
/// too large to be told. Every
/// instruction set gives the same weights.
///
/// Panics when the lengths differ.
#[inline]
pub fn code_weights(coordinates: &[f32], steps: &[f32], weights: &mut [i8]) -> (f32, i32) {
    assert_eq!(coordinates.len(), steps.len(), "a step for each coordinate");
    assert_eq!(
        coordinates.len(),
        weights.len(),
        "a weight for each coordinate"
    );
    dispatch!(level(), code_weights(coordinates, steps, weights))
}

/// Appends to `out`, in order, every lane of `blocks` whose estimate is below `limit`.
///
/// The blocks are laid out as [`code_block_bytes`] says and their lanes numbered from `first`. Sums are exact
/// integers and the three roundings that follow (product, sum with the offset, sum with the norm) are never
/// fused: every instruction set gives the same estimates, bit for bit, as long as the codes are within
/// [`CodeBits::largest`].
///
/// Panics when the rank is not a multiple of [`CodeBits::rank_step`] or above [`MAX_CODE_RANK`], when `blocks`
/// is not a whole number of blocks, and when the numbers of the lanes do not fit 32 bits.
#[inline]
pub fn scan_codes(
    bits: CodeBits,
    blocks: &[u8],
    query: &CodeQuery<'_>,
    limit: f32,
    first: u32,
    out: &mut Vec<Estimate>,
) {
    let count = blocks_in(bits, blocks, query, first);
    dispatch!(
        level(),
        scan_codes(bits, blocks, count, query, limit, first, out)
    );
}

/// The number of blocks, once all that [`scan_codes`] requires is checked.
#[inline]
pub(crate) fn blocks_in(bits: CodeBits, blocks: &[u8], query: &CodeQuery<'_>, first: u32) -> usize {
    let rank = query.weights.len();
    assert!(rank <= MAX_CODE_RANK, "codes of too many coordinates");
    let bytes = code_block_bytes(bits, rank);
    let count = blocks.len() / bytes;
    assert_eq!(count * bytes, blocks.len(), "a block of codes is cut off");
    assert!(
        count * CODE_LANES <= (u32::MAX - first) as usize,
        "too many lanes to number"
    );
    count
}
