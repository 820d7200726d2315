//! Small charts as SVG text: dark on white, colours that colour-blind readers can tell apart, no scripts.

mod axis;
mod chart;
mod colour;
mod ellipses;
mod heatmap;
mod spread;
pub(crate) mod svg;

pub use axis::Axis;
pub use chart::{Chart, Mark, Series};
pub use ellipses::{CellView, Ellipse, Group};
pub use heatmap::Heatmap;
pub use spread::{Spot, Spread};

use crate::baseline::{BRUTE_FORCE, KMEANS, KMEANS_FINE};
use crate::target::{GARLIC_DEFAULT, GARLIC_PAPER};

/// The Okabe-Ito palette without its yellow, which is too light on white.
pub mod palette {
    /// Black.
    pub const BLACK: &str = "#000000";
    /// Blue.
    pub const BLUE: &str = "#0072B2";
    /// Vermillion.
    pub const VERMILLION: &str = "#D55E00";
    /// Bluish green.
    pub const GREEN: &str = "#009E73";
    /// Orange.
    pub const ORANGE: &str = "#E69F00";
    /// Reddish purple.
    pub const PURPLE: &str = "#CC79A7";
    /// Sky blue.
    pub const SKY: &str = "#56B4E9";
}

/// The colour of a method, the same in every plot; grey for one that is not known.
pub fn method_colour(method: &str) -> &'static str {
    match method {
        GARLIC_DEFAULT => palette::GREEN,
        GARLIC_PAPER => palette::BLUE,
        KMEANS => palette::VERMILLION,
        KMEANS_FINE => palette::ORANGE,
        BRUTE_FORCE => palette::BLACK,
        _ => "#666666",
    }
}
