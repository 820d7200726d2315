//! Results as tables.

use super::Table;
use crate::baseline::{KMEANS, KMEANS_FINE};
use crate::demo::{Budget, ShapeRecall};
use crate::evaluate::Row;
use crate::plot::svg::thousands;
use crate::target::{GARLIC_DEFAULT, GARLIC_PAPER};

/// The rows worth having, and a folded table of all of them.
pub fn results_tables(rows: &[Row]) -> Vec<Table> {
    let best: Vec<&Row> = rows.iter().filter(|r| r.front || r.front_work).collect();
    let mut tables = vec![Table {
        title: "Results".into(),
        text: "Settings on a front: no other setting of the same method reaches their recall@1 with fewer candidates \
               (c) or with fewer distance equivalents (w). Where a recall was aimed at, the gap is how far k-recall@k came out \
               above it. Candidates are the distinct points whose exact distance was \
               computed. Distance equivalents count every multiply-add of a query, choosing cells and ordering bins \
               included, in units of one exact distance. QPS is for single queries, one after the other on each thread."
            .into(),
        ..rows_table(&best)
    }];
    if best.len() < rows.len() {
        tables.push(Table {
            title: format!("All {} settings measured", rows.len()),
            folded: true,
            ..rows_table(&rows.iter().collect::<Vec<_>>())
        });
    }
    tables
}

fn rows_table(rows: &[&Row]) -> Table {
    let batch = rows.iter().any(|r| r.qps_batch.is_some());
    let aimed = rows.iter().any(|r| r.target.is_some());
    let mut header = vec![
        "method",
        "cells",
        "setting",
        "recall@1",
        "recall@10",
        "candidates",
        "distance equivalents",
        "QPS",
        "p50 µs",
        "p99 µs",
    ];
    if batch {
        header.push("batch QPS");
    }
    if aimed {
        header.push("gap");
    }
    header.push("front");
    let cells = |r: &&Row| {
        let mut cells = vec![
            r.method.clone(),
            if r.cells > 0 {
                r.cells.to_string()
            } else {
                "-".into()
            },
            r.params.label(),
            format!("{:.4}", r.recall_at_1),
            share(r.recall_at_10),
            thousands(r.candidates),
            thousands(r.distance_equivalents),
            thousands(r.qps),
            thousands(r.p50_us),
            thousands(r.p99_us),
        ];
        if batch {
            cells.push(r.qps_batch.map_or("-".into(), thousands));
        }
        if aimed {
            cells.push(r.gap.map_or("-".into(), |g| format!("{g:+.4}")));
        }
        cells.push(match (r.front, r.front_work) {
            (true, true) => "c w".into(),
            (true, false) => "c".into(),
            (false, true) => "w".into(),
            (false, false) => String::new(),
        });
        cells
    };
    Table {
        header: header.into_iter().map(str::to_owned).collect(),
        rows: rows.iter().map(cells).collect(),
        left: 1,
        ..Table::default()
    }
}

/// Recall of the methods at the same budgets.
pub fn budget_table(title: &str, unit: &str, budgets: &[Budget]) -> Table {
    Table {
        title: title.into(),
        text: format!(
            "Recall@1 at equal {unit}, read off each method's front (interpolated between neighbouring settings). A dash \
             means that the method has no setting that cheap. The difference is that between {GARLIC_PAPER} and the better \
             k-means. Distances that {GARLIC_DEFAULT} estimates from codes are no candidates, but they are work."
        ),
        header: std::iter::once(unit)
            .chain(COMPARED)
            .map(str::to_owned)
            .collect(),
        rows: budgets
            .iter()
            .map(|b| {
                std::iter::once(thousands(b.cost))
                    .chain(compared(b))
                    .collect()
            })
            .collect(),
        ..Table::default()
    }
}

/// Recall by shape of cluster.
pub fn shape_table(shapes: &[ShapeRecall]) -> Table {
    let rows = |s: &ShapeRecall| -> Vec<Vec<String>> {
        let cells = |b: &Budget| {
            let first = [
                s.stratum.name().to_owned(),
                s.queries.to_string(),
                thousands(b.cost),
            ];
            first.into_iter().chain(compared(b)).collect()
        };
        s.budgets.iter().map(cells).collect()
    };
    Table {
        title: "Recall by shape".into(),
        text: "The same queries divided by the shape of the cluster they were drawn from: recall@1 when that many \
               candidates are spent on a query of this shape."
            .into(),
        header: [
            "shape",
            "queries",
            "candidates",
        ]
        .into_iter()
        .chain(COMPARED)
        .map(str::to_owned)
        .collect(),
        rows: shapes.iter().flat_map(rows).collect(),
        left: 1,
        ..Table::default()
    }
}

/// Columns of [`compared`].
const COMPARED: [&str; 5] = [
    GARLIC_DEFAULT,
    GARLIC_PAPER,
    KMEANS,
    KMEANS_FINE,
    "difference",
];

/// Recall of the methods, and how far the published one is from the better k-means.
fn compared(budget: &Budget) -> [String; 5] {
    let rival = budget
        .kmeans
        .into_iter()
        .chain(budget.kmeans_fine)
        .reduce(f64::max);
    let difference = budget
        .garlic_paper
        .zip(rival)
        .map_or("-".into(), |(g, k)| format!("{:+.4}", g - k));
    [
        share(budget.garlic_default),
        share(budget.garlic_paper),
        share(budget.kmeans),
        share(budget.kmeans_fine),
        difference,
    ]
}

fn share(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| format!("{v:.4}"))
}
