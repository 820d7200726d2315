//! `garlic add`: more vectors for an index, or new ones for points that it has.

use std::path::PathBuf;
use std::time::Instant;

use garlic_ann::{Drift, Error};
use garlic_any::AnyIndex;
use garlic_data::Vectors;
use garlic_table::{Change, Ids, RecordBatch, existing};
use serde_json::{Value, json};

use crate::args::positive;
use crate::columns;
use crate::exit::Fault;
use crate::ids;
use crate::input::{self, Points, Reading};
use crate::interrupt::Watch;
use crate::names;
use crate::output;
use crate::progress::Meter;
use crate::table;
use crate::writer::{self, Put, Writer};

/// Add vectors to an index, or replace vectors
///
/// The command checks dimension and identifiers of all vectors first. Without --ids, identifiers count up from the
/// largest one in the index.
///
/// An index directory (`garlic build --live`) takes batches. Each batch is on the device before the next one begins. An
/// index file is changed in memory and replaced at the end.
///
/// The index is trained when it grows past 4,096 points, and again each time it has doubled. A file is trained before
/// it is replaced. A directory is trained in the background, and the command waits for the end of the training. An index
/// of preset paper is not trained again: cells that points join are refitted, split and cloned.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    points: NewPoints,
    /// Replace the vectors of identifiers that exist; their columns stay
    #[arg(long, requires = "ids", conflicts_with = "columns_from")]
    update: bool,
}

/// What `add` and `upsert` take.
#[derive(Debug, clap::Args)]
pub(crate) struct NewPoints {
    /// Index file or index directory
    index: PathBuf,
    /// Vectors to add: a file, a folder of files, `-` for standard input, or the name of a data set
    #[arg(value_name = "VECTORS")]
    data: PathBuf,
    /// Identifiers of the vectors, numbers or names as those of the index: a column of the same table (an array of the same archive), or a file: text with one per
    /// line, .npy, .ivecs or .ibin; `-` reads text from standard input
    #[arg(long, value_name = "COLUMN|FILE")]
    pub(crate) ids: Option<PathBuf>,
    #[command(flatten)]
    columns: columns::Source,
    /// Vectors per batch
    #[arg(long, value_name = "N", default_value = "10000", value_parser = positive)]
    batch: usize,
    /// Do not wait for the training of a directory. The next command that changes the directory starts it again
    #[arg(long)]
    no_wait: bool,
    /// No progress and no summary
    #[arg(short, long)]
    quiet: bool,
    /// Print the summary as one JSON object; no progress
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

const EXAMPLES: &str = "\
Examples:
  garlic add vectors.garlic more.npy
  garlic add articles.garlic more.parquet --vectors embedding --ids id
  garlic add live-index more.fvecs --ids more.txt --batch 1000
  garlic add pages.garlic more.npy --ids more.txt --columns-from more.csv
  garlic add live-index more.npy --no-wait
  garlic add live-index changed.npy --ids changed.txt --update --json";

/// Adds.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    put(
        &args.points,
        match args.update {
            true => Put::Update,
            false => Put::Add,
        },
    )
}

/// Adds or replaces.
pub(crate) fn put(args: &NewPoints, how: Put) -> anyhow::Result<()> {
    let path = names::data(&args.data)?;
    input::check_stdin(&[Some(&path), args.ids.as_deref()])?;
    let reader = args.reading.open(&path)?;
    let made_for = input::metric(&reader)?;
    let mut inputs = vec![path.as_path()];
    inputs.extend(args.ids.as_deref());
    inputs.extend(args.columns.columns_from.as_deref());
    let mut writer = Writer::open(&args.index, &inputs)?;
    // The first points of an index decide whether points have names.
    let named = match writer.snapshot().next_id() {
        0 => None,
        _ => Some(writer.is_named()?),
    };
    let Points {
        vectors,
        ids: given,
        columns,
    } = input::points(reader, args.ids.as_deref(), named, &args.columns)?;
    let mut meter = Meter::new(args.quiet || args.json);

    let before = writer.snapshot();
    input::check_dimension(&*before, &vectors, &path)?;
    if let Some(made_for) = made_for.filter(|m| *m != before.metric()) {
        meter.note(&format!(
            "the data set was made for the metric {made_for}, the index for {}",
            before.metric()
        ));
    }
    let (drift_before, points_before) = (drift(&before), before.len());
    let first = given.is_none().then(|| before.next_id());
    let ids = given.unwrap_or_else(|| {
        let first = first.unwrap_or(0);
        let numbers = (0..vectors.rows() as u64).map(|i| first.saturating_add(i));
        Ids::Numbers(numbers.collect())
    });
    let replaced = check(&before, &ids, how).map_err(|e| writer.failed(e))?;
    // What is shared with a copy would have to be copied to be changed.
    drop(before);

    let watch = Watch::start();
    let start = Instant::now();
    let rows = Given {
        vectors: &vectors,
        ids: &ids,
        columns: columns.as_ref(),
    };
    put_all(args, how, &mut writer, &rows, &watch, &mut meter)?;
    meter.finish();
    let given_up = writer.is_training() && args.no_wait;
    if writer.is_training() && !given_up {
        meter.note("waiting for the training that the new points made due");
        if !writer.wait(&watch) {
            let so_far = format!(
                "all {} vectors are in the index; its training begins again when it is opened for writing",
                ids.len()
            );
            return Err(Fault::cancelled_after(&so_far));
        }
    }
    let index = writer.finish()?;
    drop(watch);
    let done = Done {
        how,
        count: ids.len(),
        replaced,
        first,
        seconds: start.elapsed().as_secs_f64(),
        given_up,
        points_before,
        drift_before,
    };
    done.tell(args, &index)
}

/// What the command has done.
struct Done {
    how: Put,
    count: usize,
    /// Vectors of points that existed.
    replaced: usize,
    /// The first identifier that was given; none where the user named them.
    first: Option<u64>,
    seconds: f64,
    /// A training that was due was not waited for.
    given_up: bool,
    points_before: usize,
    /// None for an index of the published method, which does not keep track of it.
    drift_before: Option<Drift>,
}

impl Done {
    fn per_second(&self) -> f64 {
        self.count as f64 / self.seconds.max(1e-9)
    }

    fn tell(&self, args: &NewPoints, index: &AnyIndex) -> anyhow::Result<()> {
        if args.json {
            return output::print_json(&self.summary(args, index));
        }
        if args.quiet {
            return Ok(());
        }
        output::print(&self.readable(args, index))
    }

    fn trainings(&self, drift: Option<&Drift>) -> u64 {
        let trainings = |drift: &Drift| drift.trainings;
        let before = self.drift_before.as_ref().map_or(0, trainings);
        drift.map_or(0, trainings).saturating_sub(before)
    }

    fn summary(&self, args: &NewPoints, index: &AnyIndex) -> Value {
        let drift = drift(index);
        json!({
            "index": args.index,
            "added": self.count - self.replaced,
            "updated": self.replaced,
            "first_id": self.first,
            "points": index.len(),
            "dim": index.dim(),
            "batches": self.count.div_ceil(args.batch),
            "seconds": self.seconds,
            "per_second": self.per_second(),
            "trainings": self.trainings(drift.as_ref()),
            "trained_points": drift.as_ref().map(|drift| drift.built),
            "training_given_up": self.given_up,
            "drift": drift,
        })
    }

    fn readable(&self, args: &NewPoints, index: &AnyIndex) -> String {
        let drift = drift(index);
        let numbered = self.first.map_or_else(String::new, |first| {
            format!(", identifiers {first} to {}", first + self.count as u64 - 1)
        });
        let (done, existed) = match self.how {
            Put::Add => ("added", String::new()),
            Put::Update => ("updated", String::new()),
            Put::Upsert => (
                "upserted",
                format!(", {} of them existed", table::count(self.replaced)),
            ),
        };
        let mut entries = vec![
            ("index", args.index.display().to_string()),
            (
                done,
                format!(
                    "{} in {} ({} a second){numbered}{existed}",
                    table::count(self.count),
                    table::seconds(self.seconds),
                    table::count(self.per_second() as usize)
                ),
            ),
            ("points", table::count(index.len())),
        ];
        let trainings = self.trainings(drift.as_ref());
        if let (Some(drift), true) = (&drift, trainings > 0) {
            let told = format!(
                "trained anew {}, last on {} points: it has grown from {} points, {}",
                table::times(trainings as usize),
                table::count(drift.built as usize),
                table::count(self.points_before),
                match self.drift_before.as_ref().map_or(0, |drift| drift.built) {
                    0 => "and had not been trained".to_owned(),
                    built => format!("and was trained on {}", table::count(built as usize)),
                }
            );
            entries.push(("training", told));
        }
        if self.given_up {
            let told = "given up; it begins again when the directory is opened for writing";
            entries.push(("training", told.to_owned()));
        }
        let advice = drift.as_ref().and_then(writer::advice);
        entries.extend(advice.map(|advice| ("drift", advice)));
        table::list(&entries)
    }
}

/// How far the data have moved, of an index that keeps track of it.
fn drift(index: &AnyIndex) -> Option<Drift> {
    index.updatable().ok().map(|index| index.drift())
}

/// What the index would refuse in some batch, found before the first. Returns how many of the points exist.
fn check(index: &AnyIndex, ids: &Ids, how: Put) -> garlic_ann::Result<usize> {
    match (ids, how) {
        (Ids::Numbers(numbers), _) => {
            if let Some(id) = ids::twice(numbers) {
                return Err(Error::IdTwice { id });
            }
            let existing = numbers.iter().filter(|id| index.contains(**id)).count();
            let refused = match how {
                Put::Add => numbers.iter().find(|id| index.contains(**id)),
                Put::Update => numbers.iter().find(|id| !index.contains(**id)),
                Put::Upsert => None,
            };
            match refused {
                None => Ok(existing),
                Some(&id) if how == Put::Update => Err(Error::UnknownId { id }),
                Some(&id) => Err(Error::IdExists { id }),
            }
        }
        (Ids::Names(_), Put::Update) => {
            existing(index, ids.len(), ids).map(|numbers| numbers.len())
        }
        (Ids::Names(_), Put::Add | Put::Upsert) => {
            let replace = how == Put::Upsert;
            let change = Change::put(index, ids.len(), Some(ids), None, replace)?;
            let existing = change.numbers.iter().filter(|id| index.contains(**id));
            Ok(existing.count())
        }
    }
}

/// What the user gives for the new points.
struct Given<'a> {
    vectors: &'a Vectors,
    ids: &'a Ids,
    columns: Option<&'a RecordBatch>,
}

/// Some of the identifiers.
fn part(ids: &Ids, range: std::ops::Range<usize>) -> Ids {
    match ids {
        Ids::Numbers(numbers) => Ids::Numbers(numbers[range].to_vec()),
        Ids::Names(names) => Ids::Names(names[range].to_vec()),
    }
}

fn put_all(
    args: &NewPoints,
    how: Put,
    writer: &mut Writer,
    given: &Given<'_>,
    watch: &Watch,
    meter: &mut Meter,
) -> anyhow::Result<()> {
    let values = given.vectors.to_f32();
    let (dim, total) = (given.vectors.dim(), given.ids.len());
    if total > args.batch {
        meter.start("adding", total);
    }
    let mut done = 0;
    for batch in values.chunks(args.batch * dim) {
        let count = batch.len() / dim;
        let ids = part(given.ids, done..done + count);
        let columns = given.columns.map(|columns| columns.slice(done, count));
        // How far a directory has come is part of every message: what is in it stays.
        let so_far = match writer.is_directory() && done > 0 {
            true => format!("the first {done} of {total} vectors are in the index"),
            false => "nothing was written".to_owned(),
        };
        if watch.check().is_err() {
            return Err(Fault::cancelled_after(&so_far));
        }
        if how != Put::Update
            && let Some(points) = writer.trains_with(count)
        {
            meter.note(&format!(
                "training anew, on {} points",
                table::count(points)
            ));
        }
        let rows = input::rows(batch, dim)?;
        if let Err(error) = watch.run(|| writer.put(how, rows, &ids, columns.as_ref())) {
            if matches!(error, Error::Cancelled) {
                return Err(Fault::cancelled_after(&so_far));
            }
            // After a failure of the device nobody knows about the first batch, either.
            let unknown = done == 0 && matches!(error, Error::Io { .. });
            let error = writer.failed(counted_from(error, done));
            return Err(if unknown {
                error
            } else {
                error.context(so_far)
            });
        }
        done += count;
        meter.set(done, total, "");
    }
    Ok(())
}

/// The library counts rows from the beginning of a batch, the user from that of the file.
fn counted_from(mut error: Error, before: usize) -> Error {
    match &mut error {
        Error::NotFinite { row, .. }
        | Error::TooLarge { row, .. }
        | Error::ZeroVector { row }
        | Error::TooLong { row, .. }
        | Error::NotStorable { row, .. } => *row += before,
        _ => {}
    }
    error
}
