//! `garlic build --empty`: an index without points, with or without a sample to train it on.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use garlic_ann::{BuildReport, Config, Index, Metric, Seconds};
use garlic_any::{AnyBuilder, AnyConfig, AnyIndex};
use garlic_data::Reader;

use super::{Args, configuration, tell, write};
use crate::exit::Fault;
use crate::input;
use crate::interrupt::Watch;
use crate::names;
use crate::output;
use crate::progress::Reporter;
use crate::system;

/// Makes an index without points and saves it.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    configuration_of_empty(args, None)?;
    let sample = args.train_on.as_deref().map(names::data).transpose()?;
    let reader = match &sample {
        Some(sample) => Some(args.reading.open(sample)?),
        None => None,
    };
    let made_for = match &reader {
        Some(reader) => input::metric(reader)?,
        None => None,
    };
    let config = configuration_of_empty(args, made_for)?;
    let mut inputs: Vec<&Path> = sample.as_deref().into_iter().collect();
    inputs.extend(args.config.as_deref());
    if args.live {
        output::check_directory(&args.output)?;
    } else {
        output::check_regular(&args.output, &inputs)?;
    }
    let threads = args.threads.unwrap_or_else(system::default_threads);
    let watch = Watch::start();
    let start = Instant::now();
    let index = match reader {
        Some(reader) => trained(args, config, reader, threads, &watch)?,
        None => Index::empty(args.dim.unwrap_or(0), config)?.into(),
    };
    watch.check()?;
    let mut seconds = Seconds::default();
    seconds.total = start.elapsed().as_secs_f64();
    write(args, &index)?;
    drop(watch);
    tell(args, threads, &index, &BuildReport::from(seconds))
}

/// The configuration of an index that changes: others have to be built.
fn configuration_of_empty(args: &Args, made_for: Option<Metric>) -> anyhow::Result<Config> {
    let config = configuration(args, made_for)?;
    let Ok(config) = config.updatable() else {
        return Err(Fault::usage(
            "an index of preset paper is trained once, so it cannot begin empty; build it from its points",
        ));
    };
    if config.partition.spill > 0.0 {
        return Err(Fault::usage(
            "an index with points in two cells (`spill`) does not change, so it cannot begin empty; build it from its \
             points",
        ));
    }
    Ok(config.clone())
}

fn trained(
    args: &Args,
    config: Config,
    sample: Reader,
    threads: usize,
    watch: &Watch,
) -> anyhow::Result<AnyIndex> {
    let reporter = Reporter::new(args.quiet || args.json);
    let origin = sample.origin().clone();
    reporter.note(&format!("reading {origin}"));
    let data = sample.read()?.vectors;
    if let Some(dim) = args.dim.filter(|dim| *dim != data.dim()) {
        return Err(Fault::input(format!(
            "{origin}: the vectors have dimension {}, but --dim says {dim}",
            data.dim()
        )));
    }
    let values = data.to_f32();
    let rows = input::rows(&values, data.dim())?;
    let index = AnyBuilder::new(AnyConfig::from(config))
        .threads(threads)
        .progress(|p| reporter.update(p))
        .cancel(watch.cancel())
        .train(rows);
    reporter.finish();
    // Ctrl-C at the very end counts as well.
    watch.check()?;
    index.with_context(|| origin.to_string())
}
