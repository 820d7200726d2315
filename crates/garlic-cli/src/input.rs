//! Reading what a command needs, with errors that name the file.

use std::path::Path;

use garlic_ann::{Metric, NeighborIndex, Rows};
use garlic_data::{Dataset, Vectors};

use crate::exit::Fault;
use crate::metric;

/// The metric that a data set was made for, if it says so; only headers are read.
pub(crate) fn metric(path: &Path) -> anyhow::Result<Option<Metric>> {
    Ok(garlic_data::dataset_info(path)?.metric.map(metric::of_data))
}

/// The vectors to index or to search among; of a data set its base vectors.
pub(crate) fn base_vectors(path: &Path) -> anyhow::Result<Vectors> {
    Ok(garlic_data::read_vectors(path)?)
}

/// The vectors of a file of queries; of a data set its queries.
pub(crate) fn query_vectors(path: &Path) -> anyhow::Result<Vectors> {
    let is_dataset = path.extension().is_some_and(|e| e == "hdf5" || e == "h5");
    if is_dataset {
        return Ok(Dataset::open_queries(path)?.test);
    }
    Ok(garlic_data::read_vectors(path)?)
}

/// Values as rows of the library.
pub(crate) fn rows(values: &[f32], dim: usize) -> anyhow::Result<Rows<'_>> {
    Ok(Rows::new(values, dim).map_err(garlic_ann::Error::from)?)
}

/// Refuses vectors of another dimension than the index.
pub(crate) fn check_dimension(
    index: &dyn NeighborIndex,
    vectors: &Vectors,
    path: &Path,
) -> anyhow::Result<()> {
    if vectors.dim() == index.dim() {
        return Ok(());
    }
    Err(Fault::input(format!(
        "{}: the vectors have dimension {}, the index was built for {}; use vectors of the same data set",
        path.display(),
        vectors.dim(),
        index.dim()
    )))
}

/// The whole text of a small file.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|e| Fault::input(format!("cannot read {}: {e}", path.display())))
}
