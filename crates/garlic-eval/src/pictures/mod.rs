//! Pictures of how GARLIC works, drawn from real indexes of one small example in the plane.
//!
//! `example` makes the points, `world` the indexes, `plane` and `frames` lead from their coordinates back to the
//! plane, `panel` and `canvas` draw. Every other file is one picture. Nothing is drawn by hand: cells, gradients,
//! refinements, bins and their bounds are those of the library. Where a picture repeats what a search keeps to
//! itself, such as the order of learned bins, a test holds its counts against those that the search reports.

mod bound;
mod canvas;
mod example;
mod frames;
mod gradients;
mod learned;
mod overview;
mod panel;
mod plane;
mod refinement;
mod sphere;
mod world;

use crate::error::{Error, Result};

/// A point of the plane, or a pixel.
type Point = [f64; 2];

/// A drawing and the name of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// File name, without a folder.
    pub name: &'static str,
    /// SVG text.
    pub svg: String,
}

/// Draws all pictures. The same kernels draw the same bytes every time; another instruction set rounds differently
/// while it trains, and its pictures may differ in details. Those of the documents are drawn by the scalar ones.
pub fn draw() -> Result<Vec<Picture>> {
    let world = world::World::new()?;
    let pictures = [
        ("overview.svg", overview::draw(&world)?),
        ("refinement.svg", refinement::draw(&world)?),
        ("gradients.svg", gradients::draw(&world)?),
        ("sphere.svg", sphere::draw(&world)?),
        ("learned.svg", learned::draw(&world)?),
        ("bound.svg", bound::draw(&world)?),
    ];
    Ok(pictures.map(|(name, svg)| Picture { name, svg }).into())
}

/// What a picture needs and the example should have.
trait Missing<T> {
    /// An error that names it when it is not there.
    fn missing(self, what: &'static str) -> Result<T>;
}

impl<T> Missing<T> for Option<T> {
    fn missing(self, what: &'static str) -> Result<T> {
        self.ok_or_else(|| Error::Parameter {
            name: "example",
            value: what.into(),
            rule: "the example of the pictures must have all that they show",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::svg::well_formed;

    #[test]
    fn pictures_are_well_formed_small_and_always_the_same() {
        let pictures = draw().unwrap();
        assert_eq!(pictures, draw().unwrap());
        for Picture { name, svg } in pictures {
            assert_eq!(well_formed(&svg), Ok(()), "{name}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
            assert!(svg.len() < 150_000, "{name}: {} bytes", svg.len());
        }
    }

    /// Kernels round differently, so that only those that drew the committed files can be held against them: `make
    /// scalar`, on the system they were drawn on.
    fn drawn_here() -> bool {
        let scalar = std::env::var("GARLIC_SIMD").is_ok_and(|level| level == "scalar");
        scalar && same_processor()
    }

    /// The matrix library chooses its own instructions, whatever the kernels of ours do: the pictures were drawn with
    /// its widest ones.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn same_processor() -> bool {
        std::arch::is_x86_feature_detected!("avx512f")
    }

    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    fn same_processor() -> bool {
        false
    }

    fn document(name: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/internals");
        std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
    }

    /// The page that explains the pictures says this about the example.
    pub(super) fn page_says(words: &str) {
        let page = document("how-it-works.md");
        let page: Vec<&str> = page.split_whitespace().collect();
        let said = page.join(" ").contains(words);
        assert!(
            said || !drawn_here(),
            "docs/internals/how-it-works.md does not say `{words}`"
        );
    }

    /// `make pictures` has been run since the method or a picture changed.
    #[test]
    fn the_documents_have_these_pictures() {
        for Picture { name, svg } in draw().unwrap() {
            let committed = document(&format!("pictures/{name}"));
            assert_eq!(
                committed.lines().nth(1),
                svg.lines().nth(1),
                "{name}: another title"
            );
            let same = committed == svg || !drawn_here();
            assert!(
                same,
                "{name} is not what the program draws: run `make pictures`"
            );
            assert!(document("how-it-works.md").contains(&format!("(pictures/{name})")));
        }
    }
}
