//! Where each of the three losses pulls the cells, before training and after some epochs.

use garlic_ann::Index;
use garlic_ann::train::{Backend, Cpu, Gradient, Weights};

use super::Point;
use super::canvas::{Drawing, Mark};
use super::example::WINDOW;
use super::panel::{Panel, Style};
use super::plane::{Back, pair};
use super::world::{WARM_UP, World, gaussians};
use crate::error::Result;
use crate::plot::Ellipse;
use crate::plot::palette::{BLUE, GREEN, VERMILLION};

const FAINT: &str = "#c9c9c9";
const CELL: Style = Style::line(BLUE, 1.4);
const STEP: Style = Style::line(GREEN, 1.4).dashed();
/// Pixels of the longest arrow of a panel.
const LONGEST: f64 = 46.0;
/// How far the exaggerated step changes the entry of a factor that changes most.
const CHANGE: f64 = 0.05;

/// The terms in the order of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    Divergence,
    Coverage,
    Anchor,
    All,
}

impl Term {
    const EVERY: [Self; 4] = [Self::Divergence, Self::Coverage, Self::Anchor, Self::All];

    fn heading(self) -> &'static str {
        match self {
            Self::Divergence => "divergence",
            Self::Coverage => "coverage",
            Self::Anchor => "anchor",
            Self::All => "all together",
        }
    }

    /// The weights of preset `paper`, those of the other terms being zero.
    fn weights(self, index: &Index) -> Weights {
        let config = index.config();
        let with = |term: Self, weight: f64| {
            if self == term || self == Self::All {
                weight
            } else {
                0.0
            }
        };
        Weights {
            tau: config.tau as f32,
            divergence: with(Self::Divergence, config.weight_divergence),
            coverage: with(Self::Coverage, config.weight_coverage),
            anchor: with(Self::Anchor, config.weight_anchor),
            shape: config.anchor_shape,
        }
    }
}

/// The library's own gradient of one term over all points.
pub(super) fn gradient(world: &World, index: &Index, term: Term) -> Result<Gradient> {
    let (model, points, backend) = (gaussians(index)?, world.inside(index), Cpu::default());
    let weights = term.weights(index);
    let assignment = backend.assign(points.as_rows(), model, weights.tau)?;
    let statistics = backend.statistics(points.as_rows(), model.len(), &assignment)?;
    let mut gradient = Gradient::default();
    backend.gradient(
        points.as_rows(),
        model,
        &assignment,
        &statistics,
        &weights,
        &mut gradient,
    )?;
    Ok(gradient)
}

pub(super) fn draw(world: &World) -> Result<String> {
    const TITLE: &str =
        "Where the losses pull: negative gradients of the means, and what they do to the shapes";
    let (size, gap) = (300.0, 14.0);
    let tall = Panel::tall(size, WINDOW);
    let mut d = Drawing::new(TITLE, 4.0 * size + 5.0 * gap);
    let corner = Panel::new([0.0, 0.0], size, WINDOW);
    d.define(&corner, &world.points);
    for (row, (index, when)) in [(&world.start, 0), (&world.warm, WARM_UP)]
        .into_iter()
        .enumerate()
    {
        let (model, back) = (gaussians(index)?, Back::of(index.space()));
        for (column, term) in Term::EVERY.into_iter().enumerate() {
            let pull = gradient(world, index, term)?;
            let place = [
                gap + column as f64 * (size + gap),
                34.0 + row as f64 * (tall + 8.0),
            ];
            let panel = Panel::new(place, size, WINDOW);
            let means: Vec<Point> = pull.means.chunks_exact(2).map(pair).collect();
            let longest = means.iter().map(|g| g[0].hypot(g[1])).fold(0.0, f64::max);
            let steepest = pull
                .factors
                .iter()
                .map(|g| f64::from(g.abs()))
                .fold(0.0, f64::max);
            let line = match steepest > 0.0 {
                true => format!("largest: means {longest:.1e}, shapes {steepest:.1e}"),
                false => format!("largest: means {longest:.1e}, shapes none"),
            };
            d.open(&panel, &format!("{}, epoch {when}", term.heading()), &line);
            d.cloud(&panel, FAINT, 2.4);
            for cell in 0..model.len() {
                d.ellipse(&panel, &back.cell(model, cell), index.config().tau, CELL);
            }
            if steepest > 0.0 {
                let step = CHANGE / steepest;
                let factors = model.factors.values().iter().zip(&pull.factors);
                let moved: Vec<f32> = factors
                    .map(|(l, g)| (f64::from(*l) - step * f64::from(*g)) as f32)
                    .collect();
                for (cell, factor) in moved.chunks_exact(3).enumerate() {
                    let (was, is) = (
                        back.cell(model, cell),
                        back.shaped(pair(model.mean(cell)), factor),
                    );
                    if differ(&was, &is) {
                        d.ellipse(&panel, &is, index.config().tau, STEP);
                    }
                }
            }
            for (cell, g) in means.iter().enumerate() {
                let from = back.point(pair(model.mean(cell)));
                let [x, y] = back.direction(*g);
                let length = back_length(&back, *g);
                let scale = match longest > 0.0 && length > 0.0 {
                    true => LONGEST / panel.pixels(1.0) * g[0].hypot(g[1]) / (longest * length),
                    false => 0.0,
                };
                d.arrow(
                    &panel,
                    from,
                    [from[0] - scale * x, from[1] - scale * y],
                    VERMILLION,
                );
            }
            d.close();
        }
    }
    let end = d.legend(
        34.0 + 2.0 * tall + 20.0,
        &[
            (Mark::Outline(CELL), "cell at its radius tau = 3"),
            (
                Mark::Arrow(VERMILLION),
                "negative gradient of a mean, the longest of each panel drawn equally long",
            ),
            (
                Mark::Outline(STEP),
                "the cell after an exaggerated step of its shape alone",
            ),
        ],
    );
    Ok(d.finish(TITLE, end))
}

/// Whether two shapes differ enough to be told apart in a picture.
fn differ(a: &Ellipse, b: &Ellipse) -> bool {
    let ((long, short, _), (longer, shorter, _)) = (a.axes(), b.axes());
    (longer - long).abs() > 0.02 * long || (shorter - short).abs() > 0.02 * short
}

/// Length of a direction in the plane of the data.
fn back_length(back: &Back, direction: Point) -> f64 {
    let [x, y] = back.direction(direction);
    x.hypot(y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures::tests::page_says;

    #[test]
    fn the_page_says_how_the_divergence_shrinks() {
        let world = World::shared();
        let [before, after] = [&world.start, &world.warm].map(|index| {
            let pull = gradient(world, index, Term::Divergence).unwrap();
            let lengths = pull
                .means
                .chunks_exact(2)
                .map(pair)
                .map(|g| g[0].hypot(g[1]));
            lengths.fold(0.0, f64::max)
        });
        assert!(after < before);
        page_says(&format!("from {before:.1e} to {after:.1e}"));
        let covered = |index: &Index| 100.0 * index.published().unwrap().coverage().share;
        let (before, after) = (covered(&world.start), covered(&world.warm));
        assert!(after > before);
        page_says(&format!(
            "cover {after:.0} % of the points, not {before:.0} %"
        ));
    }

    /// The panel of all terms is the sum of the other three.
    #[test]
    fn terms_add_up() {
        let world = World::shared();
        for index in [&world.start, &world.warm] {
            let [a, b, c, all] = Term::EVERY.map(|term| gradient(world, index, term).unwrap());
            assert!(all.means.iter().any(|g| *g != 0.0));
            assert!(
                b.factors.iter().all(|g| *g == 0.0),
                "the coverage loss has no pull on shapes"
            );
            let parts = a
                .means
                .iter()
                .zip(&b.means)
                .zip(&c.means)
                .map(|((a, b), c)| a + b + c);
            for (sum, all) in parts.zip(&all.means) {
                assert!((sum - all).abs() < 1e-5, "{sum} {all}");
            }
        }
    }
}
