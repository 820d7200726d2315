//! A sequence of colours for quantities: evenly spaced in lightness, told apart by colour-blind readers and in grey print.

/// Colours at equal steps, dark to light, in the manner of the map known as viridis.
const STOPS: [[u8; 3]; 10] = [
    [0x44, 0x01, 0x54],
    [0x48, 0x28, 0x78],
    [0x3e, 0x49, 0x89],
    [0x31, 0x68, 0x8e],
    [0x26, 0x82, 0x8e],
    [0x1f, 0x9e, 0x89],
    [0x35, 0xb7, 0x79],
    [0x6e, 0xce, 0x58],
    [0xb5, 0xde, 0x2b],
    [0xfd, 0xe7, 0x25],
];

/// The colour at `share` of the way from dark to light, such as `#1f9e89`.
pub(super) fn sequential(share: f64) -> String {
    let share = if share.is_nan() {
        0.0
    } else {
        share.clamp(0.0, 1.0)
    };
    let at = share * (STOPS.len() - 1) as f64;
    let low = (at.floor() as usize).min(STOPS.len() - 2);
    let part = at - low as f64;
    let mix = |i: usize| {
        let (a, b) = (f64::from(STOPS[low][i]), f64::from(STOPS[low + 1][i]));
        (a + (b - a) * part).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_the_first_and_the_last_colour_and_lightness_grows() {
        assert_eq!(
            (sequential(-1.0).as_str(), sequential(2.0).as_str()),
            ("#440154", "#fde725")
        );
        let lightness = |share: f64| -> f64 {
            let colour = sequential(share);
            let part = |i: usize| f64::from(u8::from_str_radix(&colour[i..i + 2], 16).unwrap());
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let all: Vec<f64> = (0..=40).map(|i| lightness(f64::from(i) / 40.0)).collect();
        assert!(all.is_sorted(), "{all:?}");
    }
}
