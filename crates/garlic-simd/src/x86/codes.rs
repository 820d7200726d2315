//! The scan over blocks of codes, less the sums themselves, which are the level's.

/// Defines `scan_codes` for a level that has `dots::<BITS, N>(blocks, rows, weights)`: for each of `N` blocks of
/// `rows` rows of codes, the eight sums of weight times code.
macro_rules! scan_codes {
    ($features:literal) => {
        /// Requires `blocks` to hold `count` blocks of the rank of the query (checked by the caller).
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn scan_codes(
            bits: CodeBits,
            blocks: &[u8],
            count: usize,
            query: &CodeQuery<'_>,
            limit: f32,
            first: u32,
            out: &mut Vec<Estimate>,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                match bits {
                    CodeBits::Eight => scan::<8>(blocks, count, query, limit, first, out),
                    CodeBits::Four => scan::<4>(blocks, count, query, limit, first, out),
                }
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn scan<const BITS: usize>(
            blocks: &[u8],
            count: usize,
            query: &CodeQuery<'_>,
            limit: f32,
            first: u32,
            out: &mut Vec<Estimate>,
        ) {
            out.reserve(count * CODE_LANES);
            let rows = query.weights.len() * BITS / ROW;
            let stride = rows * ROW + ROW;
            let mut at = blocks.as_ptr();
            let mut left = count;
            let mut lane = first;
            let mut length = out.len();
            // SAFETY: every call is given blocks that are left; it writes at most one estimate per lane, for
            // which there is room.
            unsafe {
                while left >= 4 {
                    let sink = out.as_mut_ptr().add(length);
                    length += few::<BITS, 4>(at, rows, query, limit, lane, sink);
                    at = at.add(4 * stride);
                    lane += 4 * CODE_LANES as u32;
                    left -= 4;
                }
                let sink = out.as_mut_ptr().add(length);
                length += match left {
                    3 => few::<BITS, 3>(at, rows, query, limit, lane, sink),
                    2 => few::<BITS, 2>(at, rows, query, limit, lane, sink),
                    1 => few::<BITS, 1>(at, rows, query, limit, lane, sink),
                    _ => 0,
                };
                out.set_len(length);
            }
        }

        /// Scans `N` blocks of `rows` rows of codes, writes the survivors to `sink` and says how many.
        #[target_feature(enable = $features)]
        unsafe fn few<const BITS: usize, const N: usize>(
            blocks: *const u8,
            rows: usize,
            query: &CodeQuery<'_>,
            limit: f32,
            first: u32,
            sink: *mut Estimate,
        ) -> usize {
            let stride = rows * ROW + ROW;
            // SAFETY: the caller's promise.
            let dots = unsafe { dots::<BITS, N>(blocks, rows, query.weights.as_ptr()) };
            let (scale, offset) = (_mm256_set1_ps(query.scale), _mm256_set1_ps(query.offset));
            let limit = _mm256_set1_ps(limit);
            let mut estimates = [_mm256_setzero_ps(); N];
            let mut below = 0u32;
            for b in 0..N {
                // SAFETY: the norms are the last row of the block.
                let norm = unsafe { _mm256_loadu_ps(blocks.add(b * stride + rows * ROW).cast()) };
                let scaled = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(dots[b]));
                estimates[b] = _mm256_add_ps(norm, _mm256_add_ps(offset, scaled));
                let kept = _mm256_cmp_ps::<_CMP_LT_OQ>(estimates[b], limit);
                below |= (_mm256_movemask_ps(kept) as u32) << (b * CODE_LANES);
            }
            if below == 0 {
                return 0;
            }
            let mut values = [0.0f32; 4 * CODE_LANES];
            for b in 0..N {
                // SAFETY: b < N <= 4.
                unsafe { _mm256_storeu_ps(values.as_mut_ptr().add(b * CODE_LANES), estimates[b]) };
            }
            let mut count = 0;
            while below != 0 {
                let lane = below.trailing_zeros();
                below &= below - 1;
                let estimate = values[lane as usize % values.len()];
                // SAFETY: `sink` has room for one estimate per lane.
                unsafe {
                    sink.add(count).write(Estimate {
                        estimate,
                        at: first + lane,
                    });
                }
                count += 1;
            }
            count
        }
    };
}

pub(super) use scan_codes;
