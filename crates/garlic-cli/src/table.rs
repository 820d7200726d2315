//! Aligned text for people: tables and lists, and numbers in readable units.

use std::fmt::Write as _;

pub(crate) use garlic_any::words::{bytes, count, percent};

/// Rows under a header; every column is as wide as its widest entry.
pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    left: Vec<bool>,
}

impl Table {
    /// An empty table. Columns whose name starts with `<` are aligned to the left, the others to the right.
    pub(crate) fn new(header: &[&str]) -> Self {
        Self {
            header: header
                .iter()
                .map(|h| h.trim_start_matches('<').to_owned())
                .collect(),
            rows: Vec::new(),
            left: header.iter().map(|h| h.starts_with('<')).collect(),
        }
    }

    /// Adds a row; missing entries are empty.
    pub(crate) fn row(&mut self, entries: Vec<String>) {
        self.rows.push(entries);
    }

    /// The table as text, each line ended.
    pub(crate) fn render(&self) -> String {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let entry = |line: &Vec<String>, c: usize| line.get(c).cloned().unwrap_or_default();
        let widths: Vec<usize> = (0..self.header.len())
            .map(|c| {
                lines()
                    .map(|line| entry(line, c).chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for line in lines() {
            let mut out = String::new();
            for (c, &width) in widths.iter().enumerate() {
                let gap = if c == 0 { "" } else { "  " };
                let value = entry(line, c);
                // Writing to a string cannot fail.
                let _ = if self.left[c] {
                    write!(out, "{gap}{value:<width$}")
                } else {
                    write!(out, "{gap}{value:>width$}")
                };
            }
            text.push_str(out.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A list of names and values, the values starting in the same column.
pub(crate) fn list(entries: &[(&str, String)]) -> String {
    let width = entries
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    entries
        .iter()
        .fold(String::new(), |mut text, (name, value)| {
            text.push_str(format!("{name:<width$}  {value}").trim_end());
            text.push('\n');
            text
        })
}

/// `0.95`, `0.9998`: a share close to one, with the digits that tell it from one.
pub(crate) fn recall(share: f64) -> String {
    let digits = match 1.0 - share {
        missed if missed > 0.0 => (2.0 - missed.log10()).floor().clamp(2.0, 9.0) as usize,
        _ => 2,
    };
    let text = format!("{share:.digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

/// `once`, `3 times`.
pub(crate) fn times(n: usize) -> String {
    match n {
        1 => "once".to_owned(),
        n => format!("{} times", count(n)),
    }
}

/// `850 ms`, `12.3 s`, `4 min 05 s`.
pub(crate) fn seconds(s: f64) -> String {
    if s < 1.0 {
        return format!("{:.0} ms", s * 1e3);
    }
    if s < 120.0 {
        return format!("{s:.1} s");
    }
    let whole = s.round() as u64;
    format!("{} min {:02} s", whole / 60, whole % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["<name", "n"]);
        table.row(vec!["a".into(), "1".into()]);
        table.row(vec!["long".into(), "100".into()]);
        assert_eq!(table.render(), "name    n\na       1\nlong  100\n");
        assert_eq!(
            list(&[("a", "1".into()), ("bcd", "2".into())]),
            "a    1\nbcd  2\n"
        );
    }

    #[test]
    fn times_are_readable() {
        assert_eq!(
            [seconds(0.0125), seconds(12.34), seconds(245.2)],
            ["12 ms", "12.3 s", "4 min 05 s"]
        );
    }
}
