//! Pictures over the plane of the first two principal components.

use super::{figure, radius_name};
use crate::diagnose::Diagnosis;
use crate::metrics::quantile;
use crate::plot::{Axis, Heatmap};
use crate::report::Figure;

/// Values that span more than this factor are coloured by their logarithm.
const WIDE: f64 = 8.0;
/// Share of the tiles at either end that colours do not tell apart.
const EXTREME: f64 = 0.01;

/// Distance to the nearest cell.
pub(super) fn reconstruction(d: &Diagnosis) -> Figure {
    let map = &d.landscape;
    let slice: Vec<Option<f64>> = map.nearest.iter().map(|v| Some(f64::from(*v))).collect();
    let seen: Vec<Option<f64>> = map
        .points_nearest
        .iter()
        .map(|v| v.map(f64::from))
        .collect();
    let label = "Mahalanobis distance to the nearest cell";
    let svgs = vec![
        Heatmap {
            outline: outline(&slice, d.radius.value, &radius_name(d)),
            quantity: wide_axis(label, &slice),
            ..plain(
                d,
                "Distance to the nearest cell, in the plane itself",
                slice,
            )
        }
        .svg(),
        Heatmap {
            quantity: wide_axis(label, &seen),
            points: Default::default(),
            empty: "no point of the sample".into(),
            ..plain(
                d,
                "Distance to the nearest cell, of the points seen there",
                seen,
            )
        }
        .svg(),
    ];
    let text = format!(
        "How well the cells account for each place: dark is near a cell, bright is far from all of them. Both maps look \
         at the plane through the mean of the data along its two directions of largest variance, which hold {:.0} % of \
         the variance. The first map is a cut: its colours belong to places that lie exactly in the plane, where there \
         may be no data when the data have many dimensions. The second shows the points that one sees over each place, \
         wherever they lie in the other dimensions, by their mean. The most extreme hundredth of the tiles \
         at either end shares a colour. Good cells are dark wherever there are points.",
        100.0 * map.variance_share
    );
    figure("Reconstruction landscape", text, svgs)
}

/// Number of cells around a place.
pub(super) fn coverage(d: &Diagnosis) -> Figure {
    let map = &d.landscape;
    let slice: Vec<Option<f64>> = map.covered.iter().map(|v| Some(f64::from(*v))).collect();
    let seen: Vec<Option<f64>> = map
        .points_covered
        .iter()
        .map(|v| v.map(f64::from))
        .collect();
    // A few tiles that very many cells cover would leave one colour for all others.
    let most = |values: &[Option<f64>]| {
        let mut known: Vec<f64> = values.iter().flatten().copied().collect();
        known.sort_by(f64::total_cmp);
        quantile(&known, 1.0 - EXTREME).max(1.0)
    };
    let label = format!("number of cells within {}", radius_name(d));
    let axis = |values: &[Option<f64>]| Axis::linear(label.clone()).from(0.0).to(most(values));
    let nowhere = map.covered.iter().all(|c| *c == 0);
    let svgs = vec![
        Heatmap {
            quantity: axis(&slice),
            ..plain(d, "Cells that cover a place, in the plane itself", slice)
        }
        .svg(),
        Heatmap {
            quantity: axis(&seen),
            points: Default::default(),
            empty: "no point of the sample".into(),
            ..plain(
                d,
                "Cells that cover a point, of the points seen there",
                seen,
            )
        }
        .svg(),
    ];
    let mut text = format!(
        "How many cells cover each place: those within {} of it. Dark places are covered by no cell, bright ones by many. {} The \
         two maps are those of the reconstruction landscape.",
        radius_name(d),
        match d.subject.preset {
            "paper" =>
                "A point belongs to every cell that covers it, and to its nearest one if none does: one that many cover is \
                 found from many sides, and makes many cells larger.",
            _ =>
                "A point belongs to one cell only; the more cells cover it, the more of them a search may have to probe to \
                 find it.",
        }
    );
    if nowhere {
        text.push_str(
            " No cell reaches the plane itself here: with many dimensions the cells lie beside it, as the points do.",
        );
    }
    figure("Coverage landscape", text, svgs)
}

fn plain(d: &Diagnosis, title: &str, values: Vec<Option<f64>>) -> Heatmap {
    let map = &d.landscape;
    let points = map
        .drawn
        .iter()
        .map(|(x, y)| (f64::from(*x), f64::from(*y)));
    Heatmap {
        title: title.into(),
        x_label: "principal component 1 (units of the model's space)".into(),
        y_label: "principal component 2".into(),
        x: map.x,
        y: map.y,
        columns: map.columns,
        values,
        quantity: Axis::linear(""),
        outline: None,
        points: (
            points.collect(),
            "points of the sample, seen from above".into(),
        ),
        empty: String::new(),
    }
}

/// A line around what is within the radius, where some but not all tiles are.
fn outline(values: &[Option<f64>], radius: f64, name: &str) -> Option<(f64, String)> {
    let inside = |v: &f64| *v <= radius;
    let some = values.iter().flatten().any(inside);
    let all = values.iter().flatten().all(inside);
    (some && !all).then(|| (radius, format!("border of what is within {name}")))
}

/// Colours for all but the few most extreme values, which share the first and the last one.
fn wide_axis(label: &str, values: &[Option<f64>]) -> Axis {
    let known = values.iter().flatten().copied();
    let mut known: Vec<f64> = known.filter(|v| v.is_finite()).collect();
    known.sort_by(f64::total_cmp);
    let (low, high) = (quantile(&known, EXTREME), quantile(&known, 1.0 - EXTREME));
    let axis = match low > 0.0 && high > WIDE * low {
        true => Axis::log(label),
        false => Axis::linear(label),
    };
    axis.from(low).to(high)
}
