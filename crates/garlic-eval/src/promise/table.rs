//! The measured rows as Markdown.

use std::fmt::Write;

use super::{growth, matrix};

/// One line for each kind and metric, one column for each number of neighbours and target; what fails is bold.
pub fn matrix(rows: &[matrix::Row]) -> String {
    let mut columns: Vec<(usize, f64)> = Vec::new();
    for row in rows {
        if !columns.contains(&(row.k, row.target)) {
            columns.push((row.k, row.target));
        }
    }
    let mut text = String::from("| kind | metric | build s |");
    for (k, target) in &columns {
        let _ = write!(text, " {k}/{} |", short(*target));
    }
    text += "\n|---|---|--:|";
    text += &"--:|".repeat(columns.len());
    text.push('\n');
    let same = |a: &matrix::Row, b: &matrix::Row| (a.kind, a.metric) == (b.kind, b.metric);
    for line in rows.chunk_by(same) {
        let first = &line[0];
        let _ = write!(
            text,
            "| {} | {} | {:.1} |",
            first.kind, first.metric, first.build_seconds
        );
        for (k, target) in &columns {
            let found = line.iter().find(|row| (row.k, row.target) == (*k, *target));
            let _ = write!(text, " {} |", found.map_or(String::new(), cell));
        }
        text.push('\n');
    }
    text
}

/// One line for each life: of each target the lowest recall against it and where, and the rate of additions at
/// the end.
pub fn growth(rows: &[growth::Row]) -> String {
    let mut targets: Vec<f64> = Vec::new();
    for row in rows {
        if !targets.contains(&row.target) {
            targets.push(row.target);
        }
    }
    let mut text = String::from("| kind | metric | order | chunk | removals | points | points/s |");
    for target in &targets {
        let _ = write!(text, " lowest at {} |", short(*target));
    }
    text += "\n|---|---|---|--:|---|--:|--:|";
    text += &"--:|".repeat(targets.len());
    text.push('\n');
    for line in rows.chunk_by(|a, b| a.life == b.life) {
        let (life, last) = (&line[0].life, &line[line.len() - 1]);
        let _ = write!(
            text,
            "| {} | {} | {} | {} | {} | {} | {:.0} |",
            life.kind.name,
            life.metric,
            life.order.name(),
            life.chunk,
            if life.removes { "yes" } else { "no" },
            last.points,
            last.added_per_second,
        );
        for target in &targets {
            let of_target = line.iter().filter(|row| row.target == *target);
            let lowest = of_target.min_by(|a, b| a.realised.mean.total_cmp(&b.realised.mean));
            let Some(row) = lowest else { continue };
            let fails = line.iter().any(|row| row.target == *target && row.fails());
            let mark = if fails { "**" } else { "" };
            let _ = write!(
                text,
                " {mark}{}{mark} ({}) |",
                recall(row.realised.mean),
                row.points
            );
        }
        text.push('\n');
    }
    text
}

/// The recall; `†` where everything was read, bold where the row fails.
fn cell(row: &matrix::Row) -> String {
    let all = if row.read_everything { "†" } else { "" };
    let realised = recall(row.realised.mean);
    match row.fails() {
        true => format!("**{realised}**{all}"),
        false => format!("{realised}{all}"),
    }
}

/// A measured share with four digits.
fn recall(share: f64) -> String {
    format!("{share:.4}").trim_start_matches('0').to_owned()
}

/// A share as it was given, without its leading zero.
fn short(share: f64) -> String {
    let text = share.to_string();
    text.strip_prefix('0').unwrap_or(&text).to_owned()
}
