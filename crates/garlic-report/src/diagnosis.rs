//! The page of a diagnosis.

use garlic_eval::diagnose::{Diagnosis, Group, Histogram, Step, Summary};
use serde::Serialize;

use crate::Result;
use crate::page::{Table, number, render};
use crate::plot::{Axis, BLUE, Chart, Drawing, GREY, Heatmap, Mark, ORANGE, SKY, Series, bars};

/// Fewest numbers on the axis of coverage: one of 0 and 1 alone would have fractions.
const LEAST_BARS: usize = 6;

/// The page of a diagnosis.
pub fn diagnosis_page(d: &Diagnosis) -> Result<String> {
    let reach = reach(d);
    let reconstruction = reconstruction(d, &reach)?;
    let coverage = coverage(d, &reach)?;
    let sizes = &d.cell_sizes.histogram;
    render(
        "diagnosis.html",
        &Page {
            d,
            nowhere: d.landscape.covered.iter().all(|c| *c == 0),
            summary: summary(d),
            first: [&reconstruction[1], &coverage[0]],
            reconstruction: &reconstruction,
            landscape: landscape(d)?,
            coverage: &coverage,
            density: density(d)?,
            curvature: curvature(d, &reach)?,
            anisotropy: anisotropy(d)?,
            explained: explained(d)?,
            diagonality: diagonality(d)?,
            sizes: [bars(
                "Points per cell",
                "points in a cell",
                "cells",
                sizes,
                None,
            )?],
            reach,
        },
    )
}

/// What `templates/diagnosis.html` shows.
#[derive(Serialize)]
struct Page<'a> {
    d: &'a Diagnosis,
    reach: String,
    /// No place of the plane lies within a cell.
    nowhere: bool,
    summary: Table,
    first: [&'a Drawing; 2],
    reconstruction: &'a [Drawing; 2],
    landscape: [Drawing; 2],
    coverage: &'a [Drawing; 2],
    density: [Drawing; 2],
    curvature: [Drawing; 2],
    anisotropy: [Drawing; 2],
    explained: [Drawing; 2],
    diagonality: [Drawing; 2],
    sizes: [Drawing; 1],
}

/// How far a cell covers, in words.
fn reach(d: &Diagnosis) -> String {
    let tau = if d.radius.value == d.radius.config_tau {
        "tau = "
    } else {
        ""
    };
    format!("radius {tau}{}", number(d.radius.value))
}

fn summary(d: &Diagnosis) -> Table {
    let a = &d.anisotropy;
    let explained = format!("variance along a cell's first {} axes", a.axes);
    let curvature = format!("curvature, {} flat directions", d.curvature.flat_directions);
    let rows: [(&str, &Summary); 7] = [
        (
            "distance of a point to its nearest cell",
            &d.coverage.nearest.summary,
        ),
        ("points in a cell", &d.cell_sizes.summary),
        ("anisotropy of a cell", &a.ratio.summary),
        (
            "effective dimension of a cell",
            &a.effective_dimension.summary,
        ),
        (&explained, &a.explained_variance.summary),
        ("diagonality of a cell", &a.diagonality.summary),
        (&curvature, &d.curvature.all),
    ];
    let row = |(name, s): (&str, &Summary)| {
        let values = [s.mean, s.deviation, s.min, s.p10, s.median, s.p90, s.max];
        let cells = values.map(number).into_iter();
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let header = [
        "",
        "mean",
        "deviation",
        "min",
        "10 %",
        "median",
        "90 %",
        "max",
    ];
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: rows
            .into_iter()
            .filter(|r| r.1.count > 0)
            .map(row)
            .collect(),
        left: 1,
    }
}

/// Distance to the nearest cell: at the places of the plane, and of the points seen there.
fn reconstruction(d: &Diagnosis, reach: &str) -> Result<[Drawing; 2]> {
    let land = &d.landscape;
    let plain = |caption: &str, values: Vec<Option<f64>>| Heatmap {
        caption: format!("Distance to the nearest cell, {caption}"),
        land,
        values,
        from_zero: false,
        points: false,
        outline: None,
    };
    let places = land.nearest.iter().map(|v| Some(f64::from(*v)));
    let seen = land.points_nearest.iter().map(|v| v.map(f64::from));
    Ok([
        Heatmap {
            points: true,
            outline: Some((d.radius.value, format!("border of what is within {reach}"))),
            ..plain("in the plane itself", places.collect())
        }
        .draw()?,
        plain("of the points seen there", seen.collect()).draw()?,
    ])
}

/// Number of cells around the places of the plane, and around the points seen there.
fn landscape(d: &Diagnosis) -> Result<[Drawing; 2]> {
    let land = &d.landscape;
    let map = |caption: &str, values: Vec<Option<f64>>, points: bool| {
        Heatmap {
            caption: caption.into(),
            land,
            values,
            from_zero: true,
            points,
            outline: None,
        }
        .draw()
    };
    let places = land.covered.iter().map(|v| Some(f64::from(*v)));
    let seen = land.points_covered.iter().map(|v| v.map(f64::from));
    Ok([
        map(
            "Cells that cover a place, in the plane itself",
            places.collect(),
            true,
        )?,
        map(
            "Cells that cover a point, of the points seen there",
            seen.collect(),
            false,
        )?,
    ])
}

/// Points by the number of cells that cover them, and by distance to the nearest.
fn coverage(d: &Diagnosis, reach: &str) -> Result<[Drawing; 2]> {
    let c = &d.coverage;
    let cells = format!("cells within {reach}");
    Ok([
        bars(
            "How often points are covered",
            &cells,
            "points",
            &over_numbers(&c.counts),
            None,
        )?,
        bars(
            "How far the nearest cell is",
            "Mahalanobis distance to the nearest cell",
            "points",
            &c.nearest.histogram,
            Some((d.radius.value, reach.to_owned())),
        )?,
    ])
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
    let (points, ends) = of
        .map(|(x, s)| ((x, s.mean), (s.mean - s.deviation, s.mean + s.deviation)))
        .unzip::<_, _, Vec<_>, Vec<_>>();
    Series::new(name, BLUE, Mark::Spread(ends), points)
}

/// Coverage against density.
fn density(d: &Diagnosis) -> Result<[Drawing; 2]> {
    let chart = |caption: &str, y: &str, groups: &[Group]| {
        let means = groups.iter().map(|g| (g.at, &g.values));
        Chart {
            caption: caption.into(),
            x: Axis::log(format!(
                "1 / distance to the {}th neighbour",
                d.density.neighbour
            )),
            y: Axis::linear(y).from(0.0),
            series: vec![spread(
                "mean and standard deviation of a tenth of the points",
                means,
            )],
        }
        .draw()
    };
    Ok([
        chart(
            "Cells that cover a point, by density",
            "cells that cover a point",
            &d.density.covered,
        )?,
        chart(
            "Distance to the nearest cell, by density",
            "distance to the nearest cell",
            &d.density.nearest,
        )?,
    ])
}

/// Curvature against radius and coverage.
fn curvature(d: &Diagnosis, reach: &str) -> Result<[Drawing; 2]> {
    let c = &d.curvature;
    let y = || Axis::linear("curvature").from(0.0).to(1.0);
    let by_radius = c.sizes.iter().map(|s| (s.radius.mean, &s.curvature));
    let plain = c.sizes.iter().map(|s| (s.radius.mean, s.without_structure));
    let kinds = c.by_coverage.iter().map(|g| g.label.clone()).collect();
    let by_coverage = c.by_coverage.iter().enumerate();
    Ok([
        Chart {
            caption: "Curvature by radius of the neighbourhood".into(),
            x: Axis::linear("radius (median nearest distances)"),
            y: y(),
            series: vec![
                spread("mean and standard deviation over the points", by_radius),
                Series::new(
                    "as many points without any structure",
                    GREY,
                    Mark::Dashed,
                    plain,
                ),
            ],
        }
        .draw()?,
        Chart {
            caption: "Curvature by coverage".into(),
            x: Axis::names(format!("cells within {reach}"), kinds),
            y: y(),
            series: vec![spread(
                &format!(
                    "mean and standard deviation, neighbourhoods of {}",
                    c.coverage_size
                ),
                by_coverage.map(|(i, g)| (i as f64, &g.values)),
            )],
        }
        .draw()?,
    ])
}

fn anisotropy(d: &Diagnosis) -> Result<[Drawing; 2]> {
    let a = &d.anisotropy;
    Ok([
        bars(
            "Anisotropy",
            "largest over smallest eigenvalue",
            "cells",
            &a.ratio.histogram,
            None,
        )?,
        bars(
            "Effective dimension",
            "participation ratio of the eigenvalues",
            "cells",
            &a.effective_dimension.histogram,
            None,
        )?,
    ])
}

fn explained(d: &Diagnosis) -> Result<[Drawing; 2]> {
    let a = &d.anisotropy;
    let caption = format!("Explained variance of the first {} axes", a.axes);
    let share = "share of a cell's variance";
    Ok([
        curve(
            "Explained variance",
            "number of a cell's first axes",
            share,
            &a.explained,
            "a ball",
        )?,
        bars(
            &caption,
            share,
            "cells",
            &a.explained_variance.histogram,
            None,
        )?,
    ])
}

fn diagonality(d: &Diagnosis) -> Result<[Drawing; 2]> {
    let a = &d.anisotropy;
    // On a logarithmic axis the diagonal, which is at distance 0, stands at 1.
    let shifted: Vec<Step> = a
        .band_energy
        .iter()
        .map(|s| Step { at: s.at + 1, ..*s })
        .collect();
    let share = "share of the squared entries";
    Ok([
        curve(
            "Band energy",
            "distance from the diagonal + 1",
            share,
            &shifted,
            "all entries alike",
        )?,
        bars(
            "Diagonality",
            share,
            "cells",
            &a.diagonality.histogram,
            None,
        )?,
    ])
}

/// Mean over the cells, the tenths below and above, and what would be plain.
fn curve(caption: &str, x: &str, y: &str, steps: &[Step], plain: &str) -> Result<Drawing> {
    let line = |name: &str, colour, mark, value: fn(&Step) -> f64| {
        Series::new(
            name,
            colour,
            mark,
            steps.iter().map(|s| (s.at as f64, value(s))),
        )
    };
    Chart {
        caption: caption.into(),
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
