//! Plain estimates from row codes.

use crate::row_codes::{
    LANE_ELEMENTS, LINE_ELEMENTS, LINE_LANES, ROW_CODE_LINE, RowCodeQuery, RowCodes, lane_units,
};

/// Where the weight of an element lies.
#[inline]
fn place(lane: usize, element: usize) -> usize {
    let (line, lane) = (lane / LINE_LANES, lane % LINE_LANES);
    line * LINE_ELEMENTS + element / 4 * ROW_CODE_LINE + 4 * lane + element % 4
}

pub(crate) fn row_code_weights(
    coordinates: &[f32],
    axes: &[u32],
    steps: &[f32],
    weights: &mut [i8],
    scales: &mut [f32],
) -> f32 {
    let axes = axes.as_chunks::<LANE_ELEMENTS>().0;
    let steps = steps.as_chunks::<LANE_ELEMENTS>().0;
    let mut total = 0.0f32;
    for (lane, scale) in scales.iter_mut().enumerate() {
        let value = |e: usize| coordinates[axes[lane][e] as usize] * steps[lane][e];
        let values: [f32; LANE_ELEMENTS] = std::array::from_fn(value);
        let largest = values.iter().fold(0.0f32, |m, v| m.max(v.abs()));
        // No units: all weights are zero.
        let (inverse, unit) = lane_units(largest).unwrap_or((0.0, 0.0));
        let mut sum = 0;
        for (e, v) in values.iter().enumerate() {
            // What is no number becomes zero.
            let weight = (v * inverse).round_ties_even() as i8;
            weights[place(lane, e)] = weight;
            sum += i32::from(weight);
        }
        *scale = unit;
        total += unit * sum as f32;
    }
    total
}

pub(crate) fn estimate_rows(
    codes: RowCodes<'_>,
    query: &RowCodeQuery<'_>,
    rows: &[u32],
    out: &mut [f32],
) {
    for (row, out) in rows.iter().zip(out) {
        *out = estimate(codes.row(*row), query);
    }
}

fn estimate(code: &[u8], query: &RowCodeQuery<'_>) -> f32 {
    let mut totals = [0.0f32; LINE_LANES];
    let lanes = code.as_chunks::<4>().0;
    for (lane, (crumbs, scale)) in lanes.iter().zip(query.scales).enumerate() {
        let product = |e: usize| {
            let crumb = crumbs[e % 4] >> (2 * (e / 4)) & 3;
            i32::from(crumb) * i32::from(query.weights[place(lane, e)])
        };
        let sum: i32 = (0..LANE_ELEMENTS).map(product).sum();
        totals[lane % LINE_LANES] += sum as f32 * scale;
    }
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            totals[i] += totals[i + half];
        }
    }
    let term = f32::from_le_bytes(lanes[lanes.len() - 1]);
    totals[0] + (query.offset + term)
}
