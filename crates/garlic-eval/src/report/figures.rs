//! The figures of a report, each with a text that says how to read it.

use garlic_ann::Index;
use garlic_ann::train::History;

use super::{Figure, Pictured};
use crate::evaluate::Row;
use crate::plot::{Axis, CellView, Chart, Mark, Series, method_colour, palette};

/// What a query costs, for the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Exact distances.
    Candidates,
    /// All multiply-adds, in distance equivalents.
    Work,
}

/// Recall@1 against cost: every setting a dot, each method's front a line.
pub fn recall_figure(rows: &[Row], cost: Cost) -> Figure {
    let (title, label, text) = match cost {
        Cost::Candidates => (
            "Recall against candidates",
            "candidates per query (exact distances)",
            "Up and to the left is better: more of the true nearest neighbours found with fewer exact distances. \
             Each dot is a setting, the line joins the settings of a method that none of its others beats. \
             Choosing the cells and reading codes are not counted here; the next figure counts them.",
        ),
        Cost::Work => (
            "Recall against all work",
            "distance equivalents per query (all multiply-adds / dimension)",
            "The same settings against everything a query computes: rotating it, choosing cells, projecting, ordering \
             bins, reading codes and exact distances. Where a line starts far to the right, choosing the cells alone costs that much.",
        ),
    };
    let at = |r: &Row| match cost {
        Cost::Candidates => (r.candidates, r.recall_at_1),
        Cost::Work => (r.distance_equivalents, r.recall_at_1),
    };
    let on_front = |r: &&Row| match cost {
        Cost::Candidates => r.front,
        Cost::Work => r.front_work,
    };
    let mut methods: Vec<&str> = Vec::new();
    for row in rows {
        if !methods.contains(&row.method.as_str()) {
            methods.push(&row.method);
        }
    }
    let mut chart = Chart::new(title, Axis::log(label), Axis::linear("recall@1").to(1.0));
    // Lines first: a method's marker shape follows its place among the methods.
    for method in &methods {
        let mut front: Vec<(f64, f64)> = rows
            .iter()
            .filter(|r| r.method == *method)
            .filter(on_front)
            .map(at)
            .collect();
        front.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart = chart.with(Series::line(*method, method_colour(method), front));
    }
    for method in &methods {
        let rest: Vec<(f64, f64)> = rows
            .iter()
            .filter(|r| r.method == *method && !on_front(r))
            .map(at)
            .collect();
        chart = chart.with(Series::line("", method_colour(method), rest).mark(Mark::Dots));
    }
    Figure {
        title: title.into(),
        text: text.into(),
        svgs: vec![chart.svg()],
    }
}

/// Loss terms, number of cells and covered share, epoch by epoch.
pub fn training_figure(history: &History) -> Figure {
    let series = |name: &str, colour: &str, value: fn(&garlic_ann::train::Epoch) -> f64| {
        let points = history
            .epochs
            .iter()
            .map(|e| (e.epoch as f64, value(e)))
            .collect();
        Series::line(name, colour, points).mark(Mark::PlainLine)
    };
    let epoch = || Axis::linear("epoch").from(0.0);
    let losses = Chart::new("Loss", epoch(), Axis::linear("loss").from(0.0))
        .with(series("total (weighted)", palette::BLACK, |e| e.loss))
        .with(series("divergence", palette::BLUE, |e| e.divergence).dashed())
        .with(series("coverage", palette::VERMILLION, |e| e.coverage))
        .with(series("anchor", palette::GREEN, |e| e.anchor).dashed())
        .size(720.0, 320.0);
    let cells = Chart::new("Cells", epoch(), Axis::linear("number of cells").from(0.0))
        .with(series("", palette::BLUE, |e| e.cells as f64))
        .size(720.0, 240.0);
    let shares = Chart::new(
        "Coverage",
        epoch(),
        Axis::linear("share of the points").from(0.0).to(1.0),
    )
    .with(series("within radius tau of a cell", palette::BLUE, |e| {
        e.covered
    }))
    .with(series("in the largest cell", palette::ORANGE, |e| e.largest).dashed())
    .size(720.0, 260.0);
    Figure {
        title: "Training".into(),
        text: "The loss should fall and flatten; its terms are shown without their weights. The number of cells jumps where cells are split, cloned or pruned. The \
               covered share is the part of the points within radius tau of some cell. A largest cell that keeps growing \
               has begun to swallow its neighbours: its probes cost many candidates."
            .into(),
        svgs: vec![losses.svg(), cells.svg(), shares.svg()],
    }
}

/// How many cells hold how many points.
pub fn cell_size_figure(index: &Index) -> Figure {
    let cells = 0..index.cells();
    let sizes: Vec<usize> = if let Some(body) = index.published() {
        cells.map(|c| body.cell(c).bins.members().len()).collect()
    } else if let Some(body) = index.tempered() {
        cells.map(|c| body.cell_len(c)).collect()
    } else {
        Vec::new()
    };
    let chart = Chart::new(
        "Points per cell",
        Axis::linear("points in a cell").from(0.0),
        Axis::linear("number of cells").from(0.0),
    )
    .with(Series::line("", palette::BLUE, histogram(&sizes, 40)).mark(Mark::Bars))
    .size(720.0, 320.0);
    Figure {
        title: "Cell sizes".into(),
        text: "A probe costs a share of the points of its cell, so a long tail to the right is what makes some queries \
               expensive. A point that several cells cover is counted in each."
            .into(),
        svgs: vec![chart.svg()],
    }
}

/// Left edges and counts of about `bars` equal bars, with a last edge of count 0.
fn histogram(sizes: &[usize], bars: usize) -> Vec<(f64, f64)> {
    let Some(&largest) = sizes.iter().max() else {
        return Vec::new();
    };
    let width = (largest + 1).div_ceil(bars.max(1)).max(1);
    let mut counts = vec![0_usize; largest / width + 1];
    for &size in sizes {
        counts[size / width] += 1;
    }
    counts.push(0);
    counts
        .into_iter()
        .enumerate()
        .map(|(i, count)| ((i * width) as f64, count as f64))
        .collect()
}

/// Cells as ellipses over a sample of the points; `None` when they are no Gaussians.
pub fn cells_figure(index: &Index, pictured: Pictured<'_>) -> Option<Figure> {
    let Pictured {
        rows,
        groups,
        group_of,
    } = pictured;
    let view = CellView::of_index(index, rows, groups, group_of, 4000)?;
    let plane = if index.config().rotates() {
        "the first two principal components of the data"
    } else {
        "the first two coordinates"
    };
    Some(Figure {
        title: "Cells from above".into(),
        text: format!(
            "The data seen along {plane}. An ellipse is the shadow of a cell: solid at Mahalanobis radius 1, dashed at \
             radius {}. The largest cells are drawn strongly, the others in grey. Cells that overlap here may be far apart in the other dimensions.",
            index.config().tau
        ),
        svgs: vec![view.svg("cells-from-above")],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_lose_nothing() {
        let sizes = [0, 1, 5, 5, 99, 100];
        for bars in [1, 2, 10, 1000] {
            let h = histogram(&sizes, bars);
            assert_eq!(h.iter().map(|b| b.1).sum::<f64>(), 6.0);
            assert_eq!(h.last().unwrap().1, 0.0);
            assert!(h.len() <= bars.min(101) + 1, "{bars} {}", h.len());
        }
        assert!(histogram(&[], 10).is_empty());
    }
}
