//! Neighbours as files: tables of ids, lines of text, objects.

use std::io::{self, Write};
use std::path::Path;

use garlic_ann::{Answer, Metric};
use garlic_data::{Ids, Vectors, write_ids, write_vectors};
use serde_json::{Value, json};

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
}

impl<'a> Hits<'a> {
    /// Takes the answers of a search for `k` neighbours by `metric`.
    pub(crate) fn new(answers: &'a [Answer], k: usize, metric: Metric) -> Self {
        Self { answers, k, metric }
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
            Format::Json => (0..self.answers.len())
                .try_for_each(|query| writeln!(out, "{}", self.object(query))),
            Format::Readable => out.write_all(self.readable().as_bytes()),
            Format::Csv | Format::Ids => self.write_lines(out),
        }
    }

    /// The answer of a query as an object. What is known about its neighbours besides their distances belongs here.
    fn object(&self, query: usize) -> Value {
        let hits = &self.answers[query].hits;
        let ids: Vec<u64> = hits.iter().map(|h| h.id).collect();
        let distances: Vec<f32> = hits.iter().map(|h| h.distance).collect();
        json!({ "query": query, "ids": ids, "distances": distances })
    }

    /// A row for each neighbour; the number of a query stands at its first.
    fn readable(&self) -> String {
        let mut table = Table::new(&["query", "rank", "id", "distance"]);
        for (query, answer) in self.answers.iter().enumerate() {
            let name = |rank: usize| match rank {
                0 => query.to_string(),
                _ => String::new(),
            };
            for (rank, hit) in answer.hits.iter().enumerate() {
                table.row(vec![
                    name(rank),
                    (rank + 1).to_string(),
                    hit.id.to_string(),
                    format!("{:.6}", hit.distance),
                ]);
            }
            if answer.hits.is_empty() {
                table.row(vec![name(0), "-".into(), "none".into()]);
            }
        }
        table.render()
    }

    fn write_lines(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "query,rank,id,distance")?;
        for (query, answer) in self.answers.iter().enumerate() {
            for (rank, hit) in answer.hits.iter().enumerate() {
                writeln!(out, "{query},{},{},{}", rank + 1, hit.id, hit.distance)?;
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
