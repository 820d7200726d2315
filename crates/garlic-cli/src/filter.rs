//! The points that a search may find, from lists of identifiers.

use std::path::Path;

use garlic_ann::{Filter, NeighborIndex};

use crate::exit::Fault;
use crate::ids;

/// The points of the list `allow` that are not in the list `deny`; all but these where there is no `allow`, and no
/// filter without both. One that lets no point through is a mistake.
pub(crate) fn read(
    allow: Option<&Path>,
    deny: Option<&Path>,
    index: &dyn NeighborIndex,
) -> anyhow::Result<Option<Filter>> {
    let list = |path: &Path| ids::read(path).map(ids::sorted);
    let denied = deny.map(list).transpose()?;
    let is_denied = |id: &u64| {
        let denied = denied.as_deref().unwrap_or_default();
        denied.binary_search(id).is_ok()
    };
    let nothing = |path: &Path, why: &str| {
        let shown = path.display();
        Fault::input(format!("{shown}: {why} of the index; check the list"))
    };
    if let Some(path) = allow {
        let mut allowed = list(path)?;
        allowed.retain(|id| !is_denied(id) && index.contains(*id));
        if allowed.is_empty() {
            return Err(nothing(path, "the filter allows no point"));
        }
        return Ok(Some(Filter::ids(allowed)));
    }
    let (Some(path), Some(denied)) = (deny, denied) else {
        return Ok(None);
    };
    if denied.iter().filter(|id| index.contains(**id)).count() == index.len() {
        return Err(nothing(path, "the filter excludes every point"));
    }
    let allows = move |id| denied.binary_search(&id).is_err();
    Ok(Some(Filter::predicate(allows)))
}
