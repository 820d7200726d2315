//! Pictures of the cells: how stretched they are, along which directions, how many points they hold.

use super::{bars, figure, number};
use crate::diagnose::{Diagnosis, Step};
use crate::plot::{Axis, Chart, Mark, Series, palette};
use crate::report::Figure;

/// Largest over smallest eigenvalue, effective dimension.
pub(super) fn anisotropy(d: &Diagnosis) -> Figure {
    let a = &d.anisotropy;
    let ratio = bars(
        "Anisotropy",
        "largest over smallest eigenvalue of the covariance",
        "cells",
        &a.ratio.histogram,
        None,
    );
    let effective = bars(
        "Effective dimension",
        "participation ratio of the eigenvalues",
        "cells",
        &a.effective_dimension.histogram,
        None,
    );
    let mut text = format!(
        "How far the cells are from balls. The eigenvalues of a cell's covariance are its variances along its own axes. The \
         first picture shows the largest over the smallest: 1 is a ball, 100 a cell ten times as long as it is thin. The \
         second shows how many directions a cell fills: (sum of the eigenvalues)² / (sum of their squares), {} for a ball \
         here and 1 for a needle.",
        d.subject.model_dim
    );
    text.push_str(&looked_at(d));
    if d.subject.preset == "default" {
        text.push_str(
            " Cells of this preset keep a few axes with their variances and one variance for all other directions, which is \
             then the smallest eigenvalue.",
        );
    }
    figure("Anisotropy of the cells", text, vec![ratio, effective])
}

/// Variance along the first axes.
pub(super) fn directions(d: &Diagnosis) -> Figure {
    let a = &d.anisotropy;
    let curve = steps(
        "Explained variance",
        Axis::log("number of a cell's first axes"),
        "share of its variance",
        &a.explained,
        "a ball",
        0,
    );
    let histogram = bars(
        &format!("Explained variance of the first {} axes", a.axes),
        "share of a cell's variance",
        "cells",
        &a.explained_variance.histogram,
        None,
    );
    let text = format!(
        "How much of a cell's variance lies along its longest axes. A curve that rises early means that few coordinates \
         describe the points of a cell well; the dashed line is a ball, where every axis has the same share. The second \
         picture shows the cells one by one at the {} axes that this index uses for its bins.",
        a.axes
    );
    figure("Explained variance", text, vec![curve, histogram])
}

/// Energy near the diagonal.
pub(super) fn diagonality(d: &Diagnosis) -> Figure {
    let a = &d.anisotropy;
    let band = steps(
        "Band energy",
        Axis::log("distance from the diagonal + 1 (1 is the diagonal alone)"),
        "share of the squared entries",
        &a.band_energy,
        "all entries alike",
        1,
    );
    let diagonal = bars(
        "Diagonality",
        "share of the squared entries on the diagonal",
        "cells",
        &a.diagonality.histogram,
        None,
    );
    let text = format!(
        "Whether cells could do with a diagonal covariance, one variance a coordinate. The coordinates are {}. Band energy is \
         the share of the squared entries of a covariance that lie at most so far from its diagonal; diagonality is the \
         share on the diagonal itself. 1 means that the axes of a cell are the coordinates; a low value means that a cell \
         lies askew, so that a diagonal covariance would lose its shape (mean diagonality here: {}).",
        a.coordinates,
        number(a.diagonality.summary.mean)
    );
    figure("Band energy and diagonality", text, vec![band, diagonal])
}

/// Points in the cells.
pub(super) fn sizes(d: &Diagnosis) -> Figure {
    let s = &d.cell_sizes;
    let chart = bars(
        "Points per cell",
        "points in a cell",
        "cells",
        &s.histogram,
        None,
    );
    let text = format!(
        "A probe costs a share of the points of its cell, so a long tail to the right is what makes some queries expensive. \
         The largest cell holds {:.2} % of the points. {}",
        100.0 * s.largest_share,
        match d.subject.preset {
            "paper" => "A point that several cells cover is counted in each.",
            _ => "Every point is in one cell.",
        }
    );
    figure("Cell sizes", text, vec![chart])
}

fn looked_at(d: &Diagnosis) -> String {
    match d.anisotropy.cells < d.subject.cells {
        true => format!(
            " {} of the {} cells were looked at, spread evenly over all.",
            d.anisotropy.cells, d.subject.cells
        ),
        false => " All cells were looked at.".into(),
    }
}

/// Mean over the cells, the tenth below and above, and what is plain; `shift` is added to the numbers on the axis.
fn steps(title: &str, x: Axis, y: &str, steps: &[Step], plain: &str, shift: usize) -> String {
    let line = |name: &str, colour: &str, value: &dyn Fn(&Step) -> f64| {
        let points = steps
            .iter()
            .map(|s| ((s.at + shift) as f64, value(s)))
            .collect();
        Series::line(name, colour, points)
    };
    Chart::new(title, x, Axis::linear(y).from(0.0).to(1.0))
        .with(line("mean of the cells", palette::BLUE, &|s| s.share.mean))
        .with(
            line("a tenth of the cells is below", palette::SKY, &|s| {
                s.share.p10
            })
            .mark(Mark::PlainLine),
        )
        .with(
            line("a tenth of the cells is above", palette::ORANGE, &|s| {
                s.share.p90
            })
            .mark(Mark::PlainLine),
        )
        .with(
            line(plain, "#666666", &|s| s.plain)
                .mark(Mark::PlainLine)
                .dashed(),
        )
        .size(720.0, 320.0)
        .svg()
}
