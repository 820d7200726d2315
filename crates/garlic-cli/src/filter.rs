//! The points that a search may find, from lists of identifiers and from an expression.

use std::path::Path;

use garlic_ann::Filter;
use garlic_table::Snapshot;

use crate::exit::Fault;
use crate::ids;

/// What restricts a search.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Restriction<'a> {
    /// A list of the points that may be found.
    pub(crate) allow: Option<&'a Path>,
    /// A list of those that may not.
    pub(crate) deny: Option<&'a Path>,
    /// An expression over the columns.
    pub(crate) expression: Option<&'a str>,
}

impl Restriction<'_> {
    /// The points that all restrictions leave; no filter without any. One that lets no point through is a mistake.
    pub(crate) fn read(&self, snapshot: &Snapshot) -> anyhow::Result<Option<Filter>> {
        let index = snapshot.index();
        let list = |path: &Path| -> anyhow::Result<Vec<u64>> {
            let listed = ids::read_any(path, Some(snapshot.is_named()))?;
            let numbers = snapshot.numbers(&listed)?;
            Ok(ids::sorted(numbers.into_iter().flatten().collect()))
        };
        let nothing = |what: &str, why: &str| {
            Fault::input(format!("{what}: {why} of the index; check the list"))
        };
        let matching = self.expression.map(|text| snapshot.matching(text));
        let matching = matching.transpose()?;
        let untrue = || {
            let text = self.expression.unwrap_or_default();
            Fault::input(format!(
                "--filter \"{text}\": the filter allows no point of the index; `garlic inspect` lists the columns"
            ))
        };
        if matching.as_ref().is_some_and(|m| m.is_empty()) && !index.is_empty() {
            return Err(untrue());
        }
        if self.allow.is_none() && self.deny.is_none() {
            return Ok(matching.map(Filter::bitmap));
        }
        let denied = self.deny.map(list).transpose()?;
        let is_denied = |id: &u64| {
            let denied = denied.as_deref().unwrap_or_default();
            denied.binary_search(id).is_ok()
        };
        let mut left = match self.allow {
            Some(path) => list(path)?,
            None => ids::sorted(index.ids()),
        };
        left.retain(|id| !is_denied(id));
        if left.is_empty() {
            return Err(match (self.allow, self.deny) {
                (Some(path), _) => {
                    nothing(&path.display().to_string(), "the filter allows no point")
                }
                (None, Some(path)) => nothing(
                    &path.display().to_string(),
                    "the filter excludes every point",
                ),
                (None, None) => nothing("the index", "there is no point"),
            });
        }
        if let Some(matching) = &matching {
            left.retain(|id| matching.contains(*id));
            if left.is_empty() {
                return Err(untrue());
            }
        }
        Ok(Some(Filter::ids(left)))
    }
}
