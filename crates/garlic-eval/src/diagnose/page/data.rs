//! Pictures of the points: how often they are covered, how dense and how curved they lie.

use super::{bars, figure, number, radius_name};
use crate::diagnose::stats::{Group, Histogram, Summary};
use crate::diagnose::{Density, Diagnosis, SizeCurvature};
use crate::plot::{Axis, Spot, Spread, palette};
use crate::report::Figure;

/// Fewest numbers on the axis of coverage.
const LEAST_BARS: usize = 6;

/// Points by the number of cells that cover them, and by distance to the nearest.
pub(super) fn coverage(d: &Diagnosis) -> Figure {
    let c = &d.coverage;
    let counts = over_numbers(&c.counts);
    let counted = bars(
        "How often points are covered",
        &format!("number of cells within {}", radius_name(d)),
        "points of the sample",
        &counts,
        None,
    );
    let near = bars(
        "How far the nearest cell is",
        "Mahalanobis distance to the nearest cell",
        "points of the sample",
        &c.nearest.histogram,
        Some((d.radius.value, radius_name(d))),
    );
    let text = format!(
        "{:.1} % of the points are covered by no cell; they stand at 0 in the first picture and right of the dashed line in \
         the second. A long tail to the right there are points that the cells do not account for.",
        100.0 * (1.0 - c.share)
    );
    figure("Coverage of the points", text, vec![counted, near])
}

/// Bars of one number each stand over it, and there are some: an axis of 0 and 1 alone would have fractions.
fn over_numbers(counts: &Histogram) -> Histogram {
    let mut counts = counts.clone();
    if counts.edges.get(1) == Some(&1.0) {
        let bars = counts.counts.len().max(LEAST_BARS);
        counts.counts.resize(bars, 0);
        counts.edges = (0..=bars).map(|i| i as f64 - 0.5).collect();
    }
    counts
}

/// Density against coverage.
pub(super) fn density(d: &Diagnosis) -> Figure {
    let found = &d.density;
    let label = format!(
        "density (1 / distance to the {}th nearest point of the sample)",
        found.neighbour
    );
    let chart = |title: &str, y: Axis, groups: &[Group]| Spread {
        spots: (
            spots(groups, |g| g.at),
            "mean and standard deviation of a tenth of the points".into(),
        ),
        ..spread(title, axis(found, &label), y)
    };
    let cells = Axis::linear("cells that cover a point").from(0.0);
    let distance = Axis::linear("distance to the nearest cell").from(0.0);
    let correlation = |value: Option<f64>| {
        value.map_or("not defined (one of them is constant)".into(), |v| {
            format!("{v:+.2}")
        })
    };
    let text = format!(
        "Whether dense regions are covered better than sparse ones. The points are cut into ten parts by their density, \
         the sparsest on the left. Cells that follow the data are near in dense regions and cover them more often; a flat line \
         says that density makes no difference. Rank correlation (+1 grows together, 0 unrelated, -1 opposite) of density \
         and number of cells: {}; of density and distance to the nearest cell: {}.",
        correlation(found.covered_correlation),
        correlation(found.nearest_correlation)
    );
    figure(
        "Density and coverage",
        text,
        vec![
            chart(
                "Cells that cover a point, by density",
                cells,
                &found.covered,
            )
            .svg(),
            chart(
                "Distance to the nearest cell, by density",
                distance,
                &found.nearest,
            )
            .svg(),
        ],
    )
}

/// Logarithmic where the densities span enough for a logarithmic axis to have ticks.
fn axis(found: &Density, label: &str) -> Axis {
    let ends = found.covered.first().zip(found.covered.last());
    match ends.is_some_and(|(low, high)| high.at > 10.0 * low.at) {
        true => Axis::log(label),
        false => Axis::linear(label),
    }
}

/// Curvature against radius and coverage.
pub(super) fn curvature(d: &Diagnosis) -> Figure {
    let c = &d.curvature;
    let axis = || Axis::linear("curvature").from(0.0).to(1.0);
    let by_radius = Spread {
        spots: (
            c.sizes
                .iter()
                .map(|s| spot(s.radius.mean, &s.curvature))
                .collect(),
            "mean and standard deviation over the points".into(),
        ),
        compared: (
            c.sizes
                .iter()
                .map(|s| (s.radius.mean, s.without_structure))
                .collect(),
            "as many points without any structure".into(),
        ),
        ..spread(
            "Curvature by radius of the neighbourhood",
            Axis::linear("mean radius (in median distances to the nearest neighbour)"),
            axis(),
        )
    };
    let by_coverage = Spread {
        kinds: c.by_coverage.iter().map(|g| g.label.clone()).collect(),
        spots: (
            c.by_coverage
                .iter()
                .enumerate()
                .map(|(i, g)| spot(i as f64, &g.values))
                .collect(),
            format!(
                "mean and standard deviation, neighbourhoods of {}",
                c.coverage_size
            ),
        ),
        ..spread(
            "Curvature by coverage",
            Axis::linear(format!("number of cells within {}", radius_name(d))),
            axis(),
        )
    };
    let text = format!(
        "How far the data are from flat. Take the nearest neighbours of a point in the sample and the point itself, and find \
         their principal directions: the curvature is the share of their variance outside the first {} of these. It is 0 \
         when the neighbourhood is a flat piece of {} dimensions and nears 1 when it fills many more. {} The dashed line is \
         what neighbourhoods of the same size would have if they filled as many directions as they can: below it, there is \
         structure that a cell with few axes can follow. The publication states a mean curvature of about 0.5 with a deviation of \
         0.06; that number depends on the sizes and the number of directions, so compare it with care. Over all sizes it is {} \
         with a deviation of {} here.",
        c.flat_directions,
        c.flat_directions,
        sizes(&c.sizes),
        number(c.all.mean),
        number(c.all.deviation)
    );
    figure("Curvature", text, vec![by_radius.svg(), by_coverage.svg()])
}

fn sizes(sizes: &[SizeCurvature]) -> String {
    if sizes.is_empty() {
        return "The sample is too small for neighbourhoods.".into();
    }
    let names: Vec<String> = sizes.iter().map(|s| s.neighbours.to_string()).collect();
    format!("From left to right: {} neighbours.", names.join(", "))
}

fn spots(groups: &[Group], x: impl Fn(&Group) -> f64) -> Vec<Spot> {
    groups.iter().map(|g| spot(x(g), &g.values)).collect()
}

fn spot(x: f64, s: &Summary) -> Spot {
    Spot {
        x,
        mean: s.mean,
        low: s.mean - s.deviation,
        high: s.mean + s.deviation,
    }
}

fn spread(title: &str, x: Axis, y: Axis) -> Spread {
    Spread {
        title: title.into(),
        x,
        y,
        kinds: Vec::new(),
        spots: Default::default(),
        colour: palette::BLUE.into(),
        compared: Default::default(),
        width: 720.0,
        height: 320.0,
    }
}
