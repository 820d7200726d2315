//! A diagnosis as a page: every picture with a text that says how to read it, for readers who have not read the paper.

mod data;
mod maps;
mod shape;

use super::Diagnosis;
use super::stats::{Histogram, Summary};
use crate::plot::svg::thousands;
use crate::plot::{Axis, Chart, Mark, Series, palette};
use crate::report::{Figure, Report, Table};

/// The page of a diagnosis: one HTML text with its drawings inside, nothing loaded from elsewhere.
pub fn diagnosis_html(diagnosis: &Diagnosis) -> String {
    diagnosis_report(diagnosis).html()
}

/// The same as a report that can be added to.
pub fn diagnosis_report(d: &Diagnosis) -> Report {
    let mut report = Report::new("Diagnosis of an index");
    report.intro = vec![
        "An index covers its points with cells: Gaussians, each with a mean and a covariance that says how far it reaches \
         in which direction. This page shows how near the cells are to the points, how often points are covered, and what \
         shapes the cells have."
            .into(),
        "The Mahalanobis distance of a point to a cell is its distance from the cell's mean measured in the cell's own \
         standard deviations: 1 along a direction in which the cell is wide is a long way, along a narrow one a short way."
            .into(),
    ];
    report.facts = facts(d);
    report.tables = vec![summary_table(d)];
    report.figures = vec![
        maps::reconstruction(d),
        maps::coverage(d),
        data::coverage(d),
        data::density(d),
        data::curvature(d),
        shape::anisotropy(d),
        shape::directions(d),
        shape::diagonality(d),
        shape::sizes(d),
    ];
    report
}

fn facts(d: &Diagnosis) -> Vec<(String, String)> {
    let s = &d.subject;
    let count = |n: usize| thousands(n as f64);
    let space = match s.model_dim == s.dim {
        true => String::new(),
        false => format!(", in a space of {} dimensions", s.model_dim),
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact(
            "Index",
            format!(
                "{} points of dimension {}, metric {}, preset {}",
                count(s.points),
                s.dim,
                s.metric,
                s.preset
            ),
        ),
        fact("Cells", format!("{}{space}", count(s.cells))),
        fact(
            "Sample",
            format!(
                "{} points chosen at random (seed {}); distances to cells for {} of them, neighbourhoods of {}",
                count(s.sampled),
                s.seed,
                count(s.covered),
                count(s.centres)
            ),
        ),
        fact("Radius", radius(d)),
    ]
}

/// The radius in words.
fn radius(d: &Diagnosis) -> String {
    let r = &d.radius;
    if r.value == r.config_tau {
        return format!("{}: {}", number(r.value), r.reason);
    }
    format!(
        "{} ({:.1} times the tau of the configuration): {}",
        number(r.value),
        r.over_tau,
        r.reason
    )
}

/// What a cell covers, for texts and axes.
fn radius_name(d: &Diagnosis) -> String {
    match d.radius.value == d.radius.config_tau {
        true => format!("radius tau = {}", number(d.radius.value)),
        false => format!("radius {}", number(d.radius.value)),
    }
}

fn summary_table(d: &Diagnosis) -> Table {
    let a = &d.anisotropy;
    let row = |name: &str, s: &Summary| -> Vec<String> {
        let values = [s.mean, s.deviation, s.min, s.p10, s.median, s.p90, s.max];
        std::iter::once(name.to_owned())
            .chain(values.iter().map(|v| number(*v)))
            .collect()
    };
    let explained = format!("variance along a cell's first {} axes", a.axes);
    let curvature = format!("curvature, {} flat directions", d.curvature.flat_directions);
    let mut rows = vec![
        row(
            "distance of a point to its nearest cell",
            &d.coverage.nearest.summary,
        ),
        row("points in a cell", &d.cell_sizes.summary),
        row("anisotropy of a cell", &a.ratio.summary),
        row(
            "effective dimension of a cell",
            &a.effective_dimension.summary,
        ),
        row(&explained, &a.explained_variance.summary),
        row("diagonality of a cell", &a.diagonality.summary),
    ];
    if d.curvature.all.count > 0 {
        rows.push(row(&curvature, &d.curvature.all));
    }
    Table {
        title: "In numbers".into(),
        text: format!(
            "{:.1} % of the points lie within the {} of a cell; a point lies within that of {} cells on average. {}The \
             largest cell holds {:.1} % of the points. The words are explained below.",
            100.0 * d.coverage.share,
            radius_name(d),
            number(d.coverage.mean),
            within_tau(d),
            100.0 * d.cell_sizes.largest_share
        ),
        header: [
            "",
            "mean",
            "deviation",
            "min",
            "10 %",
            "median",
            "90 %",
            "max",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        left: 1,
        folded: false,
    }
}

/// The share within tau, where the radius is another.
fn within_tau(d: &Diagnosis) -> String {
    if d.radius.value == d.radius.config_tau {
        return String::new();
    }
    format!(
        "Within tau = {} itself are {:.1} %. ",
        number(d.radius.config_tau),
        100.0 * d.coverage.share_within_tau
    )
}

/// Three digits or so.
fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "-".into();
    }
    if size >= 1000.0 {
        return thousands(value);
    }
    let decimals = match size {
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Bars of a histogram; a dashed line stands at `mark`, where there is one.
fn bars(
    title: &str,
    x: &str,
    y: &str,
    histogram: &Histogram,
    mark: Option<(f64, String)>,
) -> String {
    let mut points: Vec<(f64, f64)> = histogram
        .edges
        .iter()
        .zip(&histogram.counts)
        .map(|(edge, count)| (*edge, *count as f64))
        .collect();
    // The last edge closes the last bar.
    points.extend(histogram.edges.last().map(|edge| (*edge, 0.0)));
    let highest = histogram.counts.iter().copied().max().unwrap_or(0) as f64;
    let axis = if histogram.log {
        Axis::log(x)
    } else {
        Axis::linear(x)
    };
    let mut chart = Chart::new(title, axis, Axis::linear(y).from(0.0))
        .with(Series::line("", palette::BLUE, points).mark(Mark::Bars))
        .size(720.0, 280.0);
    if let Some((at, name)) = mark {
        let line = vec![(at, 0.0), (at, highest)];
        chart = chart.with(
            Series::line(name, palette::VERMILLION, line)
                .mark(Mark::PlainLine)
                .dashed(),
        );
    }
    chart.svg()
}

fn figure(title: &str, text: String, svgs: Vec<String>) -> Figure {
    Figure {
        title: title.into(),
        text,
        svgs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let all: Vec<String> = [
            0.0,
            0.12345,
            1.0,
            2.34567,
            23.4567,
            234.567,
            23456.7,
            f64::NAN,
        ]
        .map(number)
        .into();
        assert_eq!(
            all,
            ["0", "0.123", "1", "2.35", "23.5", "235", "23,457", "-"]
        );
        assert_eq!((number(100.0), number(-0.5)), ("100".into(), "-0.5".into()));
    }
}
