//! How far the work is: bars on a terminal, an occasional line elsewhere, nothing when asked to be quiet.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use garlic_ann::{Progress, Stage};
use indicatif::{ProgressBar, ProgressStyle};

/// Time between two lines when standard error is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(15);

/// Shows how many steps of some work are done.
pub(crate) struct Meter {
    shown: Shown,
    name: &'static str,
    last_line: Instant,
}

enum Shown {
    Nothing,
    Lines,
    Bar(ProgressBar),
}

impl Meter {
    /// A meter that says nothing when `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        let shown = if quiet {
            Shown::Nothing
        } else if std::io::stderr().is_terminal() {
            Shown::Bar(ProgressBar::hidden())
        } else {
            Shown::Lines
        };
        Self {
            shown,
            name: "",
            last_line: Instant::now(),
        }
    }

    /// Begins another piece of work.
    pub(crate) fn start(&mut self, name: &'static str, total: usize) {
        self.finish();
        self.name = name;
        self.last_line = Instant::now();
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Lines => eprintln!("garlic: {name}"),
            Shown::Bar(bar) => {
                *bar = ProgressBar::new(total as u64)
                    .with_style(style())
                    .with_prefix(name);
                bar.enable_steady_tick(Duration::from_millis(250));
            }
        }
    }

    /// Shows that `done` steps of `total` are done.
    pub(crate) fn set(&mut self, done: usize, total: usize, message: &str) {
        match &self.shown {
            Shown::Nothing => {}
            Shown::Lines => {
                if !self.name.is_empty() && self.last_line.elapsed() >= LINE_EVERY {
                    self.last_line = Instant::now();
                    let gap = if message.is_empty() { "" } else { ": " };
                    eprintln!("garlic: {} {done}/{total}{gap}{message}", self.name);
                }
            }
            Shown::Bar(bar) => {
                bar.set_length(total as u64);
                bar.set_position(done as u64);
                bar.set_message(message.to_owned());
            }
        }
    }

    /// One line between the bars.
    pub(crate) fn note(&self, text: &str) {
        match &self.shown {
            Shown::Nothing => {}
            Shown::Lines => eprintln!("garlic: {text}"),
            Shown::Bar(bar) => bar.suspend(|| eprintln!("garlic: {text}")),
        }
    }

    /// Takes the bar off the screen.
    pub(crate) fn finish(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template(
        "{prefix:>10} {bar:30} {pos}/{len} {elapsed} ({per_sec}, eta {eta}) {msg}",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Shows the progress of a build.
pub(crate) struct Reporter {
    state: Mutex<(Meter, Option<Stage>)>,
}

impl Reporter {
    /// A reporter that says nothing when `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            state: Mutex::new((Meter::new(quiet), None)),
        }
    }

    /// Takes the library's report.
    pub(crate) fn update(&self, progress: &Progress) {
        // A lost bar is no reason to lose a build.
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        let (meter, stage) = &mut *state;
        if *stage != Some(progress.stage) {
            *stage = Some(progress.stage);
            meter.start(name(progress.stage), progress.total);
        }
        meter.set(progress.done, progress.total, &message(progress));
    }

    /// One line about what happens outside the library, such as reading a file.
    pub(crate) fn note(&self, text: &str) {
        if let Ok(state) = self.state.lock() {
            state.0.note(text);
        }
    }

    /// Takes the bar off the screen.
    pub(crate) fn finish(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.0.finish();
        }
    }
}

fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Prepare => "preparing",
        Stage::Train => "training",
        Stage::Assign => "assigning",
        Stage::Bins => "binning",
        Stage::Graph => "linking",
        // What comes after the bins is measuring.
        _ => "calibrating",
    }
}

fn message(progress: &Progress) -> String {
    progress
        .detail
        .map_or_else(String::new, ToString::to_string)
}
