//! Pictures of how GARLIC works, drawn from real indexes of one small example in the plane.
//!
//! `example` makes the points, `world` the indexes, `plane` leads from their coordinates back to the plane,
//! `canvas` draws. Every other file is one picture. Nothing is drawn by hand: cells, gradients, refinements, bins and
//! bounds are those that the library trains, computes and searches with, and tests hold the counts of a picture
//! against those that the search reports.

mod bound;
mod canvas;
mod example;
mod gradients;
mod learned;
mod overview;
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

    /// `make pictures` has been run since the method or a picture changed. Kernels round differently, so that only
    /// those that drew the committed files can be held against them: `make scalar`, on the system they were drawn on.
    #[test]
    fn the_documents_have_these_pictures() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pictures");
        let scalar = std::env::var("GARLIC_SIMD").is_ok_and(|level| level == "scalar");
        for Picture { name, svg } in draw().unwrap() {
            let committed = std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
            assert_eq!(
                committed.lines().nth(1),
                svg.lines().nth(1),
                "{name}: another title"
            );
            if scalar && cfg!(all(target_arch = "x86_64", target_os = "linux")) {
                assert!(
                    committed == svg,
                    "{name} is not what the program draws: run `make pictures`"
                );
            }
        }
    }
}
