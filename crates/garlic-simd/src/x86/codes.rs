//! The scan over blocks of codes, less the sums themselves, which are the level's.

/// Defines `scan_codes` for a level that has `dots::<BITS, N>(blocks, rows, weights)`: for each of `N` blocks of
/// `rows` rows of codes, the eight sums of weight times code; and `emit(estimates, below, first, sink)`, which writes
/// the estimates whose bits are set in `below` and says how many.
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
                let raw = _mm256_add_ps(norm, _mm256_add_ps(offset, scaled));
                estimates[b] = _mm256_max_ps(raw, _mm256_setzero_ps());
                // A sum that is no number is no estimate: lanes without a point may have one.
                let kept = _mm256_and_ps(
                    _mm256_cmp_ps::<_CMP_LT_OQ>(estimates[b], limit),
                    _mm256_cmp_ps::<_CMP_ORD_Q>(raw, raw),
                );
                below |= (_mm256_movemask_ps(kept) as u32) << (b * CODE_LANES);
            }
            if below == 0 {
                return 0;
            }
            // SAFETY: `sink` has room for one estimate per lane.
            unsafe { emit(&estimates, below, first, sink) }
        }

        /// Requires slices of one length (checked by the caller).
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn code_weights(
            coordinates: &[f32],
            steps: &[f32],
            weights: &mut [i8],
        ) -> (f32, i32) {
            let whole = coordinates.len() / 8 * 8;
            let (c, s) = (coordinates.as_ptr(), steps.as_ptr());
            let sign = _mm256_set1_ps(-0.0);
            // SAFETY: i + 8 <= the length of all slices.
            let product = |i: usize| unsafe {
                _mm256_mul_ps(_mm256_loadu_ps(c.add(i)), _mm256_loadu_ps(s.add(i)))
            };
            let mut top = _mm256_setzero_ps();
            for i in (0..whole).step_by(8) {
                top = _mm256_max_ps(_mm256_andnot_ps(sign, product(i)), top);
            }
            let mut lanes = [0.0f32; 8];
            // SAFETY: `lanes` has eight values.
            unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), top) };
            let tail = || {
                coordinates[whole..]
                    .iter()
                    .zip(&steps[whole..])
                    .map(|(c, s)| c * s)
            };
            let largest = lanes
                .into_iter()
                .chain(tail().map(f32::abs))
                .fold(0.0f32, |m, p| if p > m { p } else { m });
            let inverse = 127.0 / largest;
            if largest == 0.0 || !largest.is_finite() || !inverse.is_finite() {
                weights.fill(0);
                return (0.0, 0);
            }
            let unit = _mm256_set1_ps(inverse);
            let mut sums = _mm256_setzero_si256();
            for i in (0..whole).step_by(8) {
                // Rounds to even, as the mode of every thread is unless it was changed.
                let scaled = _mm256_mul_ps(product(i), unit);
                // What is no number weighs nothing; converted it would be the least number there is.
                let numbers = _mm256_cmp_ps::<_CMP_ORD_Q>(scaled, scaled);
                let rounded = _mm256_cvtps_epi32(_mm256_and_ps(scaled, numbers));
                sums = _mm256_add_epi32(sums, rounded);
                let words = _mm256_packs_epi32(rounded, rounded);
                let bytes = _mm256_packs_epi16(words, words);
                let low = _mm256_extract_epi32::<0>(bytes);
                let high = _mm256_extract_epi32::<4>(bytes);
                weights[i..i + 4].copy_from_slice(&low.to_le_bytes().map(|b| b as i8));
                weights[i + 4..i + 8].copy_from_slice(&high.to_le_bytes().map(|b| b as i8));
            }
            let mut parts = [0i32; 8];
            // SAFETY: `parts` has eight values.
            unsafe { _mm256_storeu_si256(parts.as_mut_ptr().cast(), sums) };
            let mut sum: i32 = parts.iter().sum();
            for (w, p) in weights[whole..].iter_mut().zip(tail()) {
                *w = (p * inverse).round_ties_even() as i8;
                sum += i32::from(*w);
            }
            (largest / 127.0, sum)
        }
    };
}

pub(super) use scan_codes;
