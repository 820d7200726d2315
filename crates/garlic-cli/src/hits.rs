//! Neighbours as files: tables of ids, lines of text, objects.

use std::io::{self, Write};
use std::path::Path;

use garlic_ann::{Answer, Metric};
use garlic_data::{Ids, Vectors, write_ids, write_vectors};
use garlic_table::Snapshot;
use serde_json::{Value, json};

use crate::columns;
use crate::output;
use crate::table::Table;

/// What fills a row when fewer neighbours were found; no id is negative.
const MISSING: i64 = -1;

/// What fills a row of distances: farther than anything, or nothing that a distance can be.
fn missing_distance(metric: Metric) -> f32 {
    match metric {
        Metric::InnerProduct => f32::MAX,
        Metric::Euclidean | Metric::Cosine => -1.0,
    }
}

/// How neighbours are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A table of ids in one of the formats of `garlic-data`.
    Ids,
    /// A line for each neighbour.
    Csv,
    /// An object for each query.
    Json,
    /// Aligned columns for people.
    Readable,
}

impl Format {
    /// The format that an extension names.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        Self::named(path.extension()?.to_str()?)
    }

    /// The format of this name, which is an extension.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "ivecs" | "ibin" | "npy" => Some(Self::Ids),
            "csv" => Some(Self::Csv),
            "json" | "jsonl" | "ndjson" => Some(Self::Json),
            "txt" => Some(Self::Readable),
            _ => None,
        }
    }
}

/// Answers to write, `k` a row.
pub(crate) struct Hits<'a> {
    answers: &'a [Answer],
    k: usize,
    metric: Metric,
    /// The table that has the names of the points, if they have names.
    names: Option<&'a garlic_table::Table>,
    /// Columns that come with each neighbour: a name and a value for every hit, query after query.
    columns: Vec<(String, Vec<Value>)>,
}

impl<'a> Hits<'a> {
    /// Takes the answers of a search for `k` neighbours by `metric`.
    pub(crate) fn new(answers: &'a [Answer], k: usize, metric: Metric) -> Self {
        Self {
            answers,
            k,
            metric,
            names: None,
            columns: Vec::new(),
        }
    }

    /// Adds the names of the points, and columns that come with them.
    pub(crate) fn with_rows(
        mut self,
        snapshot: &'a Snapshot,
        wanted: &[String],
    ) -> anyhow::Result<Self> {
        self.names = (snapshot.table())
            .filter(|table| table.is_named())
            .map(|table| &**table);
        if !wanted.is_empty() {
            let hits = self.answers.iter().flat_map(|answer| &answer.hits);
            let numbers: Vec<Option<u64>> = hits.map(|hit| Some(hit.id)).collect();
            let rows = columns::to_json(&snapshot.columns(&numbers, wanted)?)?;
            let column = |name: &String| {
                let values = rows
                    .iter()
                    .map(|row| row.get(name).cloned().unwrap_or_default());
                (name.clone(), values.collect())
            };
            self.columns = wanted.iter().map(column).collect();
        }
        Ok(self)
    }

    fn id(&self, number: u64) -> Value {
        match self.names.and_then(|table| table.name(number)) {
            Some(name) => json!(name),
            None => json!(number),
        }
    }

    /// Writes the neighbours to a file.
    pub(crate) fn write(&self, path: &Path, format: Format) -> anyhow::Result<()> {
        if format != Format::Ids {
            return output::write_file(path, |out| self.write_text(out, format));
        }
        let ids = self.table(|hit| hit.id as i64, MISSING);
        Ids::new(ids, self.k)
            .and_then(|ids| write_ids(path, &ids))
            .map_err(|e| output::write_error(path, &e))
    }

    /// Writes the distances to a file, in the same shape as the ids.
    pub(crate) fn write_distances(&self, path: &Path) -> anyhow::Result<()> {
        let distances = self.table(|hit| hit.distance, missing_distance(self.metric));
        Vectors::from_f32(distances, self.k)
            .and_then(|distances| write_vectors(path, &distances))
            .map_err(|e| output::write_error(path, &e))
    }

    /// Writes the neighbours as text; a table of ids has no text form and becomes lines.
    pub(crate) fn write_text(&self, out: &mut dyn Write, format: Format) -> io::Result<()> {
        match format {
            Format::Json => {
                let mut before = 0;
                (0..self.answers.len())
                    .try_for_each(|query| writeln!(out, "{}", self.object(query, &mut before)))
            }
            Format::Readable => out.write_all(self.readable().as_bytes()),
            Format::Csv | Format::Ids => self.write_lines(out),
        }
    }

    /// The answer of a query as an object. `before` counts the hits of the queries before it.
    fn object(&self, query: usize, before: &mut usize) -> Value {
        let hits = &self.answers[query].hits;
        let ids: Vec<Value> = hits.iter().map(|h| self.id(h.id)).collect();
        let distances: Vec<f32> = hits.iter().map(|h| h.distance).collect();
        let mut object = json!({ "query": query, "ids": ids, "distances": distances });
        for (name, values) in &self.columns {
            object["columns"][name] = json!(values[*before..*before + hits.len()]);
        }
        *before += hits.len();
        object
    }

    /// A row for each neighbour; the number of a query stands at its first.
    fn readable(&self) -> String {
        let names = self.columns.iter().map(|(name, _)| name.as_str());
        let names: Vec<&str> = ["query", "rank", "id", "distance"]
            .into_iter()
            .chain(names)
            .collect();
        let mut table = Table::new(&names);
        let mut before = 0;
        for (query, answer) in self.answers.iter().enumerate() {
            let name = |rank: usize| match rank {
                0 => query.to_string(),
                _ => String::new(),
            };
            for (rank, hit) in answer.hits.iter().enumerate() {
                let mut row = vec![
                    name(rank),
                    (rank + 1).to_string(),
                    plain(&self.id(hit.id)),
                    format!("{:.6}", hit.distance),
                ];
                row.extend(
                    self.columns
                        .iter()
                        .map(|(_, values)| plain(&values[before])),
                );
                table.row(row);
                before += 1;
            }
            if answer.hits.is_empty() {
                table.row(vec![name(0), "-".into(), "none".into()]);
            }
        }
        table.render()
    }

    fn write_lines(&self, out: &mut dyn Write) -> io::Result<()> {
        let names = self
            .columns
            .iter()
            .map(|(name, _)| format!(",{}", quoted(name)));
        writeln!(out, "query,rank,id,distance{}", names.collect::<String>())?;
        let mut before = 0;
        for (query, answer) in self.answers.iter().enumerate() {
            for (rank, hit) in answer.hits.iter().enumerate() {
                let id = cell(&self.id(hit.id));
                let values = self.columns.iter().map(|(_, values)| &values[before]);
                let values: String = values.map(|value| format!(",{}", cell(value))).collect();
                writeln!(out, "{query},{},{id},{}{values}", rank + 1, hit.distance)?;
                before += 1;
            }
        }
        Ok(())
    }

    fn table<T: Copy>(&self, value: impl Fn(&garlic_ann::Hit) -> T, missing: T) -> Vec<T> {
        let mut table = Vec::with_capacity(self.answers.len() * self.k);
        for (row, answer) in self.answers.iter().enumerate() {
            table.extend(answer.hits.iter().take(self.k).map(&value));
            table.resize((row + 1) * self.k, missing);
        }
        table
    }
}

/// A value as text; nothing where it is missing.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value as a cell of a .csv file.
fn cell(value: &Value) -> String {
    quoted(&plain(value))
}

/// Text in quotes where a .csv file needs them.
fn quoted(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use garlic_ann::Hit;

    use super::*;

    fn answers() -> Vec<Answer> {
        let hit = |id, distance| Hit { id, distance };
        let answer = |hits| Answer::new(hits, Default::default(), false);
        vec![
            answer(vec![hit(4, 0.5), hit(2, 1.0)]),
            answer(vec![hit(9, 0.0)]),
        ]
    }

    #[test]
    fn short_answers_are_filled_up() {
        let answers = answers();
        let hits = Hits::new(&answers, 3, Metric::Cosine);
        assert_eq!(hits.table(|h| h.id as i64, MISSING), [4, 2, -1, 9, -1, -1]);
    }

    #[test]
    fn text_forms() {
        let answers = answers();
        let text = |format| {
            let mut out = Vec::new();
            Hits::new(&answers, 3, Metric::Euclidean)
                .write_text(&mut out, format)
                .unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            text(Format::Csv),
            "query,rank,id,distance\n0,1,4,0.5\n0,2,2,1\n1,1,9,0\n"
        );
        assert_eq!(
            text(Format::Readable),
            "query  rank  id  distance\n    0     1   4  0.500000\n          2   2  1.000000\n    1     1   9  0.000000\n"
        );
        assert_eq!(
            text(Format::Json).lines().nth(1).unwrap(),
            r#"{"distances":[0.0],"ids":[9],"query":1}"#
        );
    }
}
