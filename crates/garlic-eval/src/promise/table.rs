//! The measured rows as Markdown.

use std::fmt::Write;

use super::matrix;

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

/// The recall; `†` where everything was read, bold where the row fails.
fn cell(row: &matrix::Row) -> String {
    let all = if row.read_everything { "†" } else { "" };
    let realised = format!("{:.4}", row.realised.mean);
    let realised = realised.trim_start_matches('0');
    match row.fails() {
        true => format!("**{realised}**{all}"),
        false => format!("{realised}{all}"),
    }
}

/// A share without its leading zero.
fn short(share: f64) -> String {
    let text = share.to_string();
    text.strip_prefix('0').unwrap_or(&text).to_owned()
}
