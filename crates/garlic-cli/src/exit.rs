//! From errors to one line on standard error and an exit code.

use std::error::Error as StdError;
use std::io;

/// How the program ends. The numbers are part of the interface; `--help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The work was done.
    Done = 0,
    /// It could not be done for a reason outside the input: a full disk, no memory, no threads.
    Failed = 1,
    /// A flag or parameter is wrong.
    Usage = 2,
    /// A data set or an index is missing, unreadable or wrong.
    BadInput = 3,
    /// Ctrl-C.
    Cancelled = 130,
}

/// An error whose exit code was decided where it happened.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Fault {
    code: Code,
    message: String,
}

impl Fault {
    /// The user asked for something that cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
        Self::error(Code::Usage, message)
    }

    /// The data or the index is not what it should be.
    pub(crate) fn input(message: impl Into<String>) -> anyhow::Error {
        Self::error(Code::BadInput, message)
    }

    /// The result could not be produced or written.
    pub(crate) fn failed(message: impl Into<String>) -> anyhow::Error {
        Self::error(Code::Failed, message)
    }

    /// Ctrl-C was pressed.
    pub(crate) fn cancelled() -> anyhow::Error {
        Self::cancelled_after("nothing was written")
    }

    /// Ctrl-C was pressed when this had been done.
    pub(crate) fn cancelled_after(done: &str) -> anyhow::Error {
        Self::error(Code::Cancelled, format!("cancelled; {done}"))
    }

    fn error(code: Code, message: impl Into<String>) -> anyhow::Error {
        Self {
            code,
            message: message.into(),
        }
        .into()
    }
}

/// Ends the program: reports the error, if any, and gives the exit code.
pub(crate) fn finish(result: anyhow::Result<()>) -> Code {
    match result {
        Ok(()) => Code::Done,
        // The reader has seen enough: `garlic eval ... | head` is no failure.
        Err(error) if is_broken_pipe(&error) => Code::Done,
        Err(error) => {
            let told = match is_cancelled(&error) {
                // The library knows nothing about files.
                true => Fault::cancelled(),
                false => error,
            };
            eprintln!("garlic: error: {}", one_line(&told));
            code(&told)
        }
    }
}

/// Reports what the command-line parser has to say: help and version are results, the rest is wrong usage.
pub(crate) fn usage(error: &clap::Error) -> Code {
    if error.use_stderr() {
        let text = error.render().to_string();
        match text.strip_prefix("error: ") {
            Some(message) => eprintln!("garlic: error: {}", usage_line(message)),
            // Help that was not asked for, because there was no command at all.
            None => eprint!("{text}"),
        }
        return Code::Usage;
    }
    match error.print() {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => finish(Err(stdout_error(e))),
        _ => Code::Done,
    }
}

/// The parser's message in one line, its advice included, without the synopsis.
fn usage_line(message: &str) -> String {
    let told: Vec<&str> = message
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .map(|line| line.strip_prefix("tip: ").unwrap_or(line))
        .collect();
    let mut line = String::new();
    for part in told {
        match line.chars().last() {
            None => {}
            Some(':' | ',') => line.push(' '),
            Some(_) => line.push_str("; "),
        }
        line.push_str(part);
    }
    format!("{line}; --help tells more")
}

/// An error of writing to standard output.
pub(crate) fn stdout_error(error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return error.into();
    }
    Fault::failed(format!(
        "standard output: {error}; free some space or redirect it elsewhere"
    ))
}

/// Whether the library says that the work was cancelled, and nobody has said how far it was.
fn is_cancelled(error: &anyhow::Error) -> bool {
    let cause = |e: &(dyn StdError + 'static)| {
        matches!(e.downcast_ref(), Some(garlic_ann::Error::Cancelled))
    };
    error.chain().any(cause) && !error.chain().any(|e| e.is::<Fault>())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

fn code(error: &anyhow::Error) -> Code {
    error.chain().find_map(code_of).unwrap_or(Code::Failed)
}

fn code_of(cause: &(dyn StdError + 'static)) -> Option<Code> {
    if let Some(fault) = cause.downcast_ref::<Fault>() {
        return Some(fault.code);
    }
    if let Some(error) = cause.downcast_ref::<garlic_ann::Error>() {
        return Some(code_of_library(error));
    }
    if let Some(error) = cause.downcast_ref::<garlic_eval::Error>() {
        return Some(code_of_evaluation(error));
    }
    let is_input = cause.is::<garlic_data::DataError>()
        || cause.is::<garlic_ann::FormatError>()
        || cause.is::<garlic_ann::ShapeError>();
    is_input.then_some(Code::BadInput)
}

fn code_of_library(error: &garlic_ann::Error) -> Code {
    use garlic_ann::Error;
    match error {
        Error::Config { .. }
        | Error::UnknownKey { .. }
        | Error::ConfigSyntax(_)
        | Error::SearchParameter { .. } => Code::Usage,
        Error::Cancelled => Code::Cancelled,
        Error::Threads { .. }
        | Error::Locked { .. }
        | Error::Moved { .. }
        | Error::Forked { .. }
        | Error::ReadOnly { .. }
        | Error::Broken { .. }
        | Error::FilterInItself => Code::Failed,
        // Writing turns its errors into a `Fault`; what is left was read.
        Error::Io { .. }
        | Error::Format { .. }
        | Error::Damaged
        | Error::NoVectors
        | Error::TooManyVectors { .. }
        | Error::Shape(_)
        | Error::NotFinite { .. }
        | Error::TooLarge { .. }
        | Error::TooSmall { .. }
        | Error::TooClose { .. }
        | Error::ZeroVector { .. }
        | Error::ZeroQuery { .. }
        | Error::TooLong { .. }
        | Error::QueryNotFinite { .. }
        | Error::QueryTooLarge { .. }
        | Error::NotStorable { .. }
        | Error::Dimension { .. }
        | Error::VectorDimension { .. }
        | Error::IdCount { .. }
        | Error::IdExists { .. }
        | Error::IdTwice { .. }
        | Error::IdTooLarge { .. }
        | Error::UnknownId { .. }
        | Error::NameExists { .. }
        | Error::NameTwice { .. }
        | Error::UnknownName { .. }
        | Error::IdKind { .. }
        | Error::Columns { .. }
        | Error::Expression { .. }
        | Error::MaskLength { .. }
        | Error::Unchanging
        | Error::LastPoints
        | Error::Spilled
        | Error::OnDisk
        | Error::NotOnDisk
        | Error::Directory { .. }
        | Error::Log { .. } => Code::BadInput,
        // For variants to come; a test holds every variant against the table.
        _ => Code::Failed,
    }
}

fn code_of_evaluation(error: &garlic_eval::Error) -> Code {
    use garlic_eval::Error;
    match error {
        Error::Index(error) => code_of_library(error),
        Error::Parameter { .. } => Code::Usage,
        _ => Code::BadInput,
    }
}

/// The error and its causes in one line. Causes that a message already tells are not repeated.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = flatten(&cause.to_string());
        if line.contains(&text) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&text);
    }
    line
}

/// Joins the lines of a message and drops the quoted source lines of a parser (`3 | key = ...`).
fn flatten(text: &str) -> String {
    let quoted = |line: &str| {
        line.trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start()
            .starts_with('|')
    };
    text.lines()
        .filter(|line| !quoted(line))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn codes_follow_the_kind_of_error() {
        let library =
            |e: garlic_ann::Error| code(&anyhow::Error::from(e).context("while doing something"));
        assert_eq!(library(garlic_ann::Error::Cancelled), Code::Cancelled);
        assert_eq!(library(garlic_ann::Error::NoVectors), Code::BadInput);
        let unknown = garlic_ann::Index::builder().set("tua", "3").err().unwrap();
        assert_eq!(library(unknown), Code::Usage);
        assert_eq!(code(&anyhow::anyhow!("something else")), Code::Failed);
        assert_eq!(code(&Fault::input("x").context("y")), Code::BadInput);
    }

    /// One error of every variant of the library's, and the code that `--help` promises for it.
    fn library_errors() -> Vec<(&'static str, garlic_ann::Error, Code)> {
        use garlic_ann::Error as E;
        let path = || std::path::PathBuf::from("x.garlic");
        let text = || "x".to_owned();
        let io = || io::Error::from(io::ErrorKind::NotFound);
        let format = garlic_ann::Index::from_bytes(b"no index").unwrap_err();
        let shape = garlic_ann::Rows::new(&[1.0], 2).unwrap_err();
        let (row, column, value, limit, id) = (1, 2, 3.0, 4.0, 5);
        macro_rules! table {
            ($($variant:ident $({ $($fields:tt)* })? $(( $inner:expr ))? => $code:ident),* $(,)?) => {
                vec![$((stringify!($variant), E::$variant $({ $($fields)* })? $(($inner))?, Code::$code)),*]
            };
        }
        table![
            NoVectors => BadInput,
            TooManyVectors { rows: 2, limit: 1 } => BadInput,
            Shape(shape) => BadInput,
            NotFinite { row, column, value } => BadInput,
            QueryNotFinite { row, column, value } => BadInput,
            TooLarge { row, column, value, limit } => BadInput,
            QueryTooLarge { row, column, value, limit } => BadInput,
            TooSmall { largest: value, limit } => BadInput,
            TooClose { row, distance: 1.0 } => BadInput,
            ZeroVector { row } => BadInput,
            ZeroQuery { row } => BadInput,
            TooLong { row, length: 2.0, longest: 1.0 } => BadInput,
            Dimension { expected: 1, found: 2 } => BadInput,
            VectorDimension { expected: 1, found: 2 } => BadInput,
            IdCount { vectors: 1, ids: 2 } => BadInput,
            IdExists { id } => BadInput,
            IdTwice { id } => BadInput,
            IdTooLarge { id } => BadInput,
            UnknownId { id } => BadInput,
            NameExists { name: text() } => BadInput,
            NameTwice { name: text() } => BadInput,
            UnknownName { name: text() } => BadInput,
            IdKind { message: text() } => BadInput,
            Columns { message: text() } => BadInput,
            Expression { expression: text(), message: text() } => BadInput,
            MaskLength { entries: 1, rows: 2 } => BadInput,
            Unchanging => BadInput,
            LastPoints => BadInput,
            Spilled => BadInput,
            OnDisk => BadInput,
            NotOnDisk => BadInput,
            NotStorable { row, column, value, stored: "u8" } => BadInput,
            Damaged => BadInput,
            Io { path: path(), source: io() } => BadInput,
            Format { path: path(), source: format } => BadInput,
            Directory { path: path(), message: text() } => BadInput,
            Log { path: path(), offset: 1, message: text() } => BadInput,
            SearchParameter { name: "k", value: text(), rule: "must be x" } => Usage,
            UnknownKey { key: text(), suggestion: None } => Usage,
            Config { key: text(), message: text() } => Usage,
            ConfigSyntax(text()) => Usage,
            Cancelled => Cancelled,
            Threads { threads: 1, message: text() } => Failed,
            Locked { path: path() } => Failed,
            Moved { path: path() } => Failed,
            Forked { path: path() } => Failed,
            FilterInItself => Failed,
            ReadOnly { path: path() } => Failed,
            Broken { path: path(), message: text() } => Failed,
        ]
    }

    #[test]
    fn every_error_of_the_library_has_its_documented_code() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../garlic-core/src/error.rs");
        let source = std::fs::read_to_string(source).unwrap();
        let variants = source.split_once("pub enum Error {").unwrap().1;
        let variants = variants.split_once("\n}\n").unwrap().0;
        let mut variants: Vec<&str> = variants
            .lines()
            .filter_map(|line| line.strip_prefix("    "))
            .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
            .map(|line| line.split([' ', '(', ',']).next().unwrap_or_default())
            .collect();
        variants.sort_unstable();
        let mut table = library_errors();
        table.sort_unstable_by_key(|(name, ..)| *name);
        let names: Vec<&str> = table.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, variants, "the table has every variant");
        for (name, error, expected) in table {
            // As commands pass errors on: with words around them, and through the crate that measures.
            let error = garlic_eval::Error::from(error);
            let inner = anyhow::Error::from(error).context("inner").context("outer");
            assert_eq!(code(&inner), expected, "{name} inside");
        }
        for (name, error, expected) in library_errors() {
            assert_eq!(code(&error.into()), expected, "{name}");
        }
    }

    #[test]
    fn a_format_error_by_itself_is_bad_input() {
        let error = garlic_ann::Index::from_bytes(b"no index").unwrap_err();
        let error = anyhow::Error::from(error).context("x.garlic");
        assert_eq!(code(&error), Code::BadInput);
    }

    #[test]
    fn the_parsers_message_is_one_line() {
        let text = "unexpected argument '--epoch' found\n\n  tip: a similar argument exists: '--epochs'\n\nUsage: x\n";
        assert_eq!(
            usage_line(text),
            "unexpected argument '--epoch' found; a similar argument exists: '--epochs'; --help tells more"
        );
        let text = "these are missing:\n  --output <OUT>\n  <DATA>\n\nUsage: x\n\nFor more information, try '--help'.\n";
        assert_eq!(
            usage_line(text),
            "these are missing: --output <OUT>; <DATA>; --help tells more"
        );
    }

    #[test]
    fn a_message_is_one_line_and_tells_each_cause_once() {
        let error = anyhow::anyhow!("a.bin: file is short").context("a.bin: file is short");
        assert_eq!(one_line(&error), "a.bin: file is short");
        let error = Err::<(), _>(anyhow::anyhow!("bad\n  |\n3 | tau = = 2\n  |   ^\nthing"))
            .context("config.toml")
            .unwrap_err();
        assert_eq!(one_line(&error), "config.toml: bad; thing");
    }
}
