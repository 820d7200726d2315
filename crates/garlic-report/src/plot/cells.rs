//! Cells from above: points as dots, cells as ellipses.

use garlic_eval::demo::{CellView, Ellipse};
use garlic_eval::synthetic::Stratum;
use plotters::prelude::*;

use super::{Axis, BLUE, Drawing, GREEN, GREY, Key, ORANGE, PURPLE, WIDTH, draw};
use crate::Result;

const HEIGHT: u32 = 900;
/// Cells drawn strongly; more would hide the points and each other.
const STRONG: usize = 16;
/// Corners of the polygon that stands for an ellipse.
const CORNERS: usize = 48;
/// One in so many points at each side may lie outside the picture.
const OUTLIERS: usize = 500;
const COLOURS: [RGBColor; 3] = [GREEN, ORANGE, PURPLE];

/// Draws the cells at radius 1, the largest also at radius `tau`.
pub(crate) fn cells(view: &CellView, tau: f64) -> Result<Drawing> {
    let ([x0, x1], [y0, y1]) = window(view);
    let axis = |n: u8, ends: [f64; 2]| {
        let label = if view.rotated {
            "principal component"
        } else {
            "coordinate"
        };
        let axis = Axis::linear(format!("{label} {n} (normalised)"));
        axis.from(ends[0]).to(ends[1]).over(ends.into_iter())
    };
    let inside = |p: &(f64, f64)| (x0..=x1).contains(&p.0) && (y0..=y1).contains(&p.1);
    // The parts of an outline that the window shows.
    let outline = |cell: &Ellipse, radius: f64, style: ShapeStyle| {
        let corners = polygon(cell, radius);
        let parts = corners.split(|p| !inside(p)).filter(|part| part.len() > 1);
        let paths = parts.map(|part| PathElement::new(part.to_vec(), style));
        paths.collect::<Vec<_>>()
    };
    let strong = view.ellipses.len().min(STRONG);
    let (largest, others) = view.ellipses.split_at(strong);
    let svg = draw(HEIGHT, axis(1, [x0, x1]), axis(2, [y0, y1]), |frame| {
        let faint = GREY.mix(0.6).stroke_width(1);
        frame.draw_series(others.iter().flat_map(|c| outline(c, 1.0, faint)))?;
        let shown = view.points.iter().filter(|p| inside(&(p.0, p.1)));
        frame.draw_series(shown.map(|(x, y, shape)| {
            let colour = COLOURS.get(*shape).unwrap_or(&GREY);
            Circle::new((*x, *y), 3, colour.mix(0.55).filled())
        }))?;
        for (radius, style) in [
            (tau, BLUE.mix(0.5).stroke_width(2)),
            (1.0, BLUE.stroke_width(4)),
        ] {
            frame.draw_series(largest.iter().flat_map(|c| outline(c, radius, style)))?;
        }
        Ok(())
    })?;
    let shapes = Stratum::ALL.into_iter().zip(COLOURS);
    let mut keys: Vec<Key> = shapes
        .map(|(shape, colour)| Key::new(shape.name(), colour, "dot"))
        .collect();
    keys.push(Key::new(
        format!("the {strong} largest cells at radius 1 (strong) and {tau} (thin)"),
        BLUE,
        "line",
    ));
    if !others.is_empty() {
        keys.push(Key::new("the other cells at radius 1", GREY, "line"));
    }
    Ok(Drawing {
        svg,
        keys,
        ..Drawing::default()
    })
}

/// The ellipse at a Mahalanobis radius: the circle of that radius through the factor of the covariance.
fn polygon(cell: &Ellipse, radius: f64) -> Vec<(f64, f64)> {
    let [l00, l10, l11] = cell.factor;
    (0..=CORNERS)
        .map(|i| {
            let (sin, cos) = (std::f64::consts::TAU * i as f64 / CORNERS as f64).sin_cos();
            (
                cell.centre.0 + radius * l00 * cos,
                cell.centre.1 + radius * (l10 * cos + l11 * sin),
            )
        })
        .collect()
}

/// Ranges of x and y that show all but the outermost points, one unit being about as long in both directions.
fn window(view: &CellView) -> ([f64; 2], [f64; 2]) {
    let range = |pick: fn((f64, f64)) -> f64| {
        let points = view.points.iter().map(|p| (p.0, p.1));
        let all = points
            .chain(view.ellipses.iter().map(|c| c.centre))
            .map(pick);
        let mut all: Vec<f64> = all.filter(|v| v.is_finite()).collect();
        all.sort_by(f64::total_cmp);
        match all.len() {
            0 => (0.0, 1.0),
            n => (all[n / OUTLIERS], all[n - 1 - n / OUTLIERS]),
        }
    };
    let ((x0, x1), (y0, y1)) = (range(|p| p.0), range(|p| p.1));
    let aspect = f64::from(WIDTH) / f64::from(HEIGHT);
    let height = ((y1 - y0).max((x1 - x0) / aspect) * 1.08).max(1e-6);
    let around = |a: f64, b: f64, length: f64| [(a + b - length) / 2.0, (a + b + length) / 2.0];
    (around(x0, x1, height * aspect), around(y0, y1, height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polygons_have_the_covariance_of_their_cell() {
        let cell = Ellipse {
            centre: (1.0, -2.0),
            factor: [2.0, 1.0, 0.5],
        };
        let corners = polygon(&cell, 3.0);
        assert_eq!(corners.len(), CORNERS + 1);
        for (x, y) in corners {
            // Solve L z = p - c; the Mahalanobis distance is |z|.
            let z0 = (x - 1.0) / 2.0;
            let z1 = (y + 2.0 - z0) / 0.5;
            assert!((z0.hypot(z1) - 3.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_far_point_does_not_decide_the_window() {
        let many = (0..1000).map(|i| (f64::from(i % 10), f64::from(i / 100), 0));
        let view = CellView {
            points: many.chain([(1e6, 0.0, 0)]).collect(),
            ..CellView::default()
        };
        let ([x0, x1], [y0, y1]) = window(&view);
        assert!(x0 < 0.0 && x1 < 20.0 && y0 < 0.0 && y1 < 20.0);
        assert!(((x1 - x0) / (y1 - y0) - 960.0 / 900.0).abs() < 1e-9);
    }
}
