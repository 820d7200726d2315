//! `garlic build --memory`: vectors are read some at a time, and the parts of the build lie in a folder meanwhile.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use arrow_array::RecordBatch;
use garlic_ann::{Error, Index, StreamedBuild};
use garlic_any::{AnyConfig, AnyIndex};
use garlic_data::{Columns, Identifiers, Reader};
use garlic_table::{FirstRows, Ids};

use super::{Args, tell, write};
use crate::exit::Fault;
use crate::ids;
use crate::input::{self, STDIN};
use crate::interrupt::Watch;
use crate::place;
use crate::progress::Reporter;
use crate::system;
use crate::table;

/// Bytes of the vectors that are read at a time.
const BATCH_BYTES: usize = 4 << 20;

/// Builds and saves.
pub(super) fn run(
    args: &Args,
    memory: u64,
    config: AnyConfig,
    reader: Reader,
    sample: Option<&Path>,
    reporter: &Reporter,
) -> anyhow::Result<()> {
    let Ok(config) = config.updatable().cloned() else {
        return Err(Fault::usage(
            "--memory belongs to preset default; leave it out or use --preset default",
        ));
    };
    if args.resume && args.data.as_deref() == Some(Path::new(STDIN)) {
        return Err(Fault::usage(
            "standard input cannot be read again; give a file to resume a build",
        ));
    }
    let origin = reader.origin().clone();
    let (reader, ids_file) = input::beside(reader, args.ids.as_deref(), &args.columns)?;
    let shape = reader.shape()?;
    let bytes = 4 * (shape.rows as u64) * (shape.dim as u64);
    if bytes > memory / 4 && !reader.is_streamed()? {
        return Err(Fault::input(format!(
            "{origin}: a file like this is read as a whole, which takes {}; write it as .npy, .fbin or Parquet first",
            table::bytes(bytes)
        )));
    }
    let threads = args.threads.unwrap_or_else(system::default_threads);
    let watch = Watch::start();
    let mut builder = Index::builder()
        .config(config)
        .threads(threads)
        .progress(|p| reporter.update(p))
        .cancel(watch.cancel());
    if let Some(path) = sample {
        let sample = args.reading.queries_beside(path)?;
        let values = sample.to_f32();
        builder = builder.queries_like(input::rows(&values, sample.dim())?);
    }
    let folder = parts_folder(&args.output);
    let mut build = builder
        .streamed(&folder, memory, &reader.describe()?, args.resume)
        .map_err(|error| explained(error, &folder))?;
    let limit = memory.saturating_sub(build.needed_memory(shape.rows, shape.dim));
    let checked = build.check_memory(shape.rows, shape.dim);
    let taken = match checked {
        Ok(()) => take(args, &mut build, reader, ids_file, shape.rows, limit),
        Err(error) => Err(error.into()),
    };
    let beside = match taken {
        Ok(beside) => beside,
        Err(error) => {
            reporter.finish();
            // Nothing is finished yet that a later build could use, unless an earlier one had finished it.
            if build.finished_rows().is_none() {
                let _ = build.remove();
            }
            return Err(error);
        }
    };
    let built = build.build();
    reporter.finish();
    if watch.check().is_err() {
        let kept = format!("go on with --resume, or remove {}", folder.display());
        return Err(Fault::cancelled_after(&kept));
    }
    let built = built.with_context(|| origin.to_string())?;
    if let Some(needed) = built.graph_left_out
        && !args.quiet
    {
        eprintln!(
            "garlic: warning: the index has no neighbour graph, which would make searches faster: building it needs {} \
             of memory",
            table::bytes(needed)
        );
    }
    let index = beside.attach(built.index.into());
    write(args, &index)?;
    drop(index);
    drop(watch);
    build.remove()?;
    let index: AnyIndex = place::open(&args.output)?;
    tell(args, threads, &index, &built.report)
}

/// The folder of the parts of a build.
fn parts_folder(output: &Path) -> PathBuf {
    let mut name = OsString::from(output);
    name.push(".parts");
    name.into()
}

/// Says what to do about the folder of an earlier build in the words of the command line.
fn explained(error: Error, folder: &Path) -> anyhow::Error {
    match error {
        Error::Config { key, message } if key == "resume" => Fault::usage(format!(
            "{message} (--resume goes on, and removing {} begins anew)",
            folder.display()
        )),
        other => other.into(),
    }
}

/// Gives the build all vectors, unless it has them, and reads what is beside them. That stays in memory, where it may
/// take `limit` bytes.
fn take(
    args: &Args,
    build: &mut StreamedBuild<'_>,
    reader: Reader,
    ids_file: Option<&Path>,
    rows: usize,
    limit: u64,
) -> anyhow::Result<FirstRows> {
    let origin = reader.origin().clone();
    let reads_beside = reader.options().ids.is_some() || reader.options().columns != Columns::None;
    let has_rows = build.finished_rows().is_some();
    let (mut done, mut kept) = (0, 0);
    let mut identifiers: Option<Identifiers> = None;
    let mut columns: Vec<RecordBatch> = Vec::new();
    if !has_rows || reads_beside {
        let batch_rows = (BATCH_BYTES / 4 / reader.shape()?.dim.max(1)).clamp(1, 1 << 16);
        for batch in reader.batches(batch_rows) {
            let batch = batch?;
            done += batch.vectors.rows();
            if !has_rows {
                let values = batch.vectors.to_f32();
                let dim = batch.vectors.dim();
                let pushed = build.push(input::rows(&values, dim)?);
                pushed.with_context(|| origin.to_string())?;
                build.report_read(done, rows.max(done));
            }
            if let Some(more) = batch.ids {
                kept += identifier_bytes(&more);
                match &mut identifiers {
                    Some(ids) => ids.append(more, &origin)?,
                    None => identifiers = Some(more),
                }
            }
            if batch.columns.num_columns() > 0 {
                kept += batch.columns.get_array_memory_size() as u64;
                columns.push(batch.columns);
            }
            // A table holds what it was made of once more while it is made.
            if 2 * kept > limit {
                return Err(Fault::input(format!(
                    "{origin}: identifiers and columns are kept in memory, and those of the first {} rows take {}; raise \
                     --memory, or leave columns out",
                    table::count(done),
                    table::bytes(kept)
                )));
            }
        }
    }
    let rows = build.finished_rows().unwrap_or(done);
    let ids: Option<Ids> = match (identifiers, ids_file) {
        (Some(ids), _) => Some(input::of_column_ids(ids, None)),
        (None, Some(file)) => Some(ids::read_for(file, rows, &origin, None)?),
        (None, None) => None,
    };
    let columns = args.columns.read(rows, &columns)?;
    let kept = ids.as_ref().map_or(0, ids_bytes)
        + columns
            .as_ref()
            .map_or(0, |columns| columns.get_array_memory_size() as u64);
    let beside = FirstRows::new(rows, ids, columns.as_ref())?;
    build.reserve(kept);
    if let Some(numbers) = beside.numbers() {
        build.set_ids(numbers.to_vec());
    }
    Ok(beside)
}

fn identifier_bytes(ids: &Identifiers) -> u64 {
    match ids {
        Identifiers::Numbers(numbers) => 8 * numbers.len() as u64,
        Identifiers::Strings(names) => name_bytes(names),
    }
}

fn ids_bytes(ids: &Ids) -> u64 {
    match ids {
        Ids::Numbers(numbers) => 8 * numbers.len() as u64,
        Ids::Names(names) => name_bytes(names),
    }
}

fn name_bytes(names: &[String]) -> u64 {
    let bytes = |name: &String| (name.len() + size_of::<String>()) as u64;
    names.iter().map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_beside_the_index() {
        let folder = parts_folder(Path::new("a/b.garlic"));
        assert_eq!(folder, Path::new("a/b.garlic.parts"));
    }
}
