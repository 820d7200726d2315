//! The page of a diagnosis.

use garlic_eval::diagnose::{Diagnosis, Group, Histogram, Step, Summary};
use minijinja::context;
use minijinja::value::Serde;

use crate::Result;
use crate::page::{number, render};
use crate::plot::{Axis, BLUE, Chart, Drawing, GREY, Mark, ORANGE, SKY, Series, bars, heatmap};

/// Fewest numbers on the axis of coverage: one of 0 and 1 alone would have fractions.
const LEAST_BARS: usize = 6;

/// The page of a diagnosis.
pub fn diagnosis_page(d: &Diagnosis) -> Result<String> {
    let (a, c, land) = (&d.anisotropy, &d.coverage, &d.landscape);
    let tau = if d.radius.value == d.radius.config_tau {
        "tau = "
    } else {
        ""
    };
    let reach = format!("radius {tau}{}", number(d.radius.value));
    let (reach, covering) = (reach.as_str(), format!("cells within {reach}"));
    let (limit, near) = (
        Some((d.radius.value, reach)),
        "Mahalanobis distance to the nearest cell",
    );
    let known = |values: &[f32]| values.iter().map(|v| Some(f64::from(*v))).collect();
    let seen = |values: &[Option<f32>]| values.iter().map(|v| v.map(f64::from)).collect();
    let counts = land.covered.iter().map(|v| Some(f64::from(*v))).collect();
    // On a logarithmic axis the diagonal, which is at distance 0, stands at 1.
    let band: Vec<Step> = a
        .band_energy
        .iter()
        .map(|s| Step { at: s.at + 1, ..*s })
        .collect();
    let [by_radius, by_coverage] = curvature(d, &covering)?;
    let content = context! {
        d => Serde(d),
        reach,
        nowhere => land.covered.iter().all(|c| *c == 0),
        nearest => heatmap(land, known(&land.nearest), false, limit)?,
        points_nearest => heatmap(land, seen(&land.points_nearest), false, None)?,
        covered => heatmap(land, counts, true, None)?,
        points_covered => heatmap(land, seen(&land.points_covered), true, None)?,
        counts => bars(&covering, "points", &over_numbers(&c.counts), None)?,
        distances => bars(near, "points", &c.nearest.histogram, limit)?,
        covered_by_density => density(d, "cells that cover a point", &d.density.covered)?,
        nearest_by_density => density(d, "distance to the nearest cell", &d.density.nearest)?,
        by_radius, by_coverage,
        ratio => bars("largest over smallest eigenvalue", "cells", &a.ratio.histogram, None)?,
        effective => bars("participation ratio of the eigenvalues", "cells", &a.effective_dimension.histogram, None)?,
        explained => curve("number of a cell's first axes", "share of its variance", &a.explained, "a ball")?,
        explained_by_cell => bars("share of its variance", "cells", &a.explained_variance.histogram, None)?,
        band => curve("distance from the diagonal + 1", "share of the squared entries", &band, "all entries alike")?,
        diagonality => bars("share of the squared entries", "cells", &a.diagonality.histogram, None)?,
        sizes => bars("points in a cell", "cells", &d.cell_sizes.histogram, None)?,
    };
    render("diagnosis.html", content)
}

/// Bars of one number each stand over it.
fn over_numbers(counts: &Histogram) -> Histogram {
    let mut counts = counts.clone();
    if counts.edges.get(1) == Some(&1.0) {
        let bars = counts.counts.len().max(LEAST_BARS);
        counts.counts.resize(bars, 0);
        counts.edges = (0..=bars).map(|i| i as f64 - 0.5).collect();
    }
    counts
}

/// Means with a standard deviation to either side.
fn spread<'a>(name: &str, of: impl Iterator<Item = (f64, &'a Summary)>) -> Series {
    let (points, ends): (Vec<_>, Vec<_>) = of
        .map(|(x, s)| ((x, s.mean), (s.mean - s.deviation, s.mean + s.deviation)))
        .unzip();
    Series::new(name, BLUE, Mark::Spread(ends), points)
}

/// What points of different density have.
fn density(d: &Diagnosis, y: &str, groups: &[Group]) -> Result<Drawing> {
    let means = groups.iter().map(|g| (g.at, &g.values));
    let label = format!("1 / distance to the {}th neighbour", d.density.neighbour);
    Chart {
        x: Axis::log(label),
        y: Axis::linear(y).from(0.0),
        series: vec![spread(
            "mean and standard deviation of a tenth of the points",
            means,
        )],
    }
    .draw()
}

/// Curvature against radius and coverage.
fn curvature(d: &Diagnosis, covering: &str) -> Result<[Drawing; 2]> {
    let c = &d.curvature;
    let chart = |x: &str, series: Vec<Series>| {
        let (x, y) = (Axis::linear(x), Axis::linear("curvature").from(0.0).to(1.0));
        Chart { x, y, series }.draw()
    };
    let sizes = c.sizes.iter().map(|s| (s.radius.mean, &s.curvature));
    let plain = c.sizes.iter().map(|s| (s.radius.mean, s.without_structure));
    let plain = Series::new(
        "as many points without any structure",
        GREY,
        Mark::Dashed,
        plain,
    );
    let name = "mean and standard deviation over the points";
    let covered = c.by_coverage.iter().map(|g| (g.at, &g.values));
    Ok([
        chart(
            "radius (median nearest distances)",
            vec![spread(name, sizes), plain],
        )?,
        chart(covering, vec![spread(name, covered)])?,
    ])
}

/// Mean over the cells, the tenths below and above, and what would be plain.
fn curve(x: &str, y: &str, steps: &[Step], plain: &str) -> Result<Drawing> {
    let line = |name: &str, colour, mark, value: fn(&Step) -> f64| {
        let points = steps.iter().map(|s| (s.at as f64, value(s)));
        Series::new(name, colour, mark, points)
    };
    Chart {
        x: Axis::log(x),
        y: Axis::linear(y).from(0.0).to(1.0),
        series: vec![
            line("mean of the cells", BLUE, Mark::Line, |s| s.share.mean),
            line("a tenth of the cells is below", SKY, Mark::Plain, |s| {
                s.share.p10
            }),
            line("a tenth of the cells is above", ORANGE, Mark::Plain, |s| {
                s.share.p90
            }),
            line(plain, GREY, Mark::Dashed, |s| s.plain),
        ],
    }
    .draw()
}
