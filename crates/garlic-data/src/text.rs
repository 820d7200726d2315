//! Numbers as text, a vector a line (`.csv`, `.tsv`).
//!
//! The first line is a header if it holds anything but numbers. Empty lines and lines that begin with `#` are left out.

use std::io::Cursor;

use bytes::Bytes;
use csv::{ByteRecord, ReaderBuilder, Trim};

use crate::batches::{Piece, no_columns};
use crate::error::{DataError, Origin, Result};
use crate::format::Format;
use crate::identifiers::Identifiers;
use crate::input::Input;
use crate::reader::ReadOptions;

/// What may stand between numbers; the first of them in the first line does.
const DELIMITERS: [u8; 4] = *b",\t; ";
/// Lines that are not read as vectors begin with this; numpy.savetxt writes headers so.
const COMMENT: u8 = b'#';
/// Most characters of a field that a message shows.
const SHOWN: usize = 40;

/// The vectors of a file, `rows` at a time.
pub(crate) struct Lines {
    reader: csv::Reader<Cursor<Bytes>>,
    origin: Origin,
    rows: usize,
    /// The first line, if it is no header.
    first: Option<ByteRecord>,
    /// Numbers of a line, with the identifier; unknown until the first.
    fields: Option<usize>,
    /// The field of the identifier.
    id: Option<usize>,
    /// Whether identifiers are numbers; the first one decides.
    numbered: Option<bool>,
}

/// The reader of a file, its first line, and whether that is a header.
fn start(
    input: &Input,
    format: Format,
    options: &ReadOptions,
) -> Result<(csv::Reader<Cursor<Bytes>>, ByteRecord, bool)> {
    let bytes = input.bytes()?;
    let mut reader = ReaderBuilder::new()
        .delimiter(options.delimiter.unwrap_or_else(|| match format {
            Format::Tsv => b'\t',
            _ => delimiter(&bytes),
        }))
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .comment(Some(COMMENT))
        .from_reader(Cursor::new(bytes));
    let mut first = ByteRecord::new();
    let found = reader.read_byte_record(&mut first);
    if !found.map_err(|cause| unreadable(input.origin(), &cause))? {
        return Err(DataError::ZeroRows {
            origin: input.origin(),
        });
    }
    let is_header = first.iter().any(|field| number(field).is_none());
    Ok((reader, first, is_header))
}

fn unreadable(origin: Origin, cause: &csv::Error) -> DataError {
    DataError::Unreadable {
        origin,
        format: "csv",
        cause: cause.to_string(),
    }
}

fn delimiter(bytes: &[u8]) -> u8 {
    let lines = bytes.split(|b| *b == b'\n');
    let mut filled = lines.filter(|line| {
        let text = line.trim_ascii_start();
        !text.is_empty() && text[0] != COMMENT
    });
    let first = filled.next().unwrap_or_default().trim_ascii();
    let found = DELIMITERS.into_iter().find(|d| first.contains(d));
    found.unwrap_or(b',')
}

fn number(field: &[u8]) -> Option<f32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn shown(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(field);
    text.chars().take(SHOWN).collect()
}

/// The names in the header; none without one.
pub(crate) fn names(input: &Input, format: Format, options: &ReadOptions) -> Result<Vec<String>> {
    let (_, first, is_header) = start(input, format, options)?;
    let name = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    Ok(match is_header {
        true => first.iter().map(name).collect(),
        false => Vec::new(),
    })
}

impl Lines {
    pub(crate) fn open(
        input: &Input,
        format: Format,
        options: &ReadOptions,
        rows: usize,
    ) -> Result<Self> {
        let origin = input.origin();
        if options.vectors.is_some() {
            let problem = "every column of text that is no identifier belongs to the vectors: leave out --vectors";
            return Err(DataError::selection(origin, problem));
        }
        let (reader, first, is_header) = start(input, format, options)?;
        let place = |name: &String| first.iter().position(|f| f == name.as_bytes());
        let id = match &options.ids {
            None => None,
            Some(name) if is_header => Some(place(name).ok_or_else(|| {
                let names: Vec<String> = first.iter().map(shown).collect();
                let problem = format!(
                    "there is no column `{name}`: the columns are {}",
                    names.join(", ")
                );
                DataError::selection(origin.clone(), problem)
            })?),
            Some(name) => {
                let problem = format!(
                    "there is no column `{name}`: the file has no header that names columns"
                );
                return Err(DataError::selection(origin, problem));
            }
        };
        Ok(Self {
            fields: is_header.then_some(first.len()),
            first: (!is_header).then_some(first),
            reader,
            origin,
            rows,
            id,
            numbered: None,
        })
    }

    fn bad(&self, line: &ByteRecord, problem: String) -> DataError {
        let number = line.position().map_or(0, csv::Position::line);
        DataError::BadRow {
            origin: self.origin.clone(),
            place: format!("line {number}"),
            problem,
        }
    }

    fn take(&mut self, line: &ByteRecord, piece: &mut Piece) -> Result<()> {
        let fields = *self.fields.get_or_insert(line.len());
        if line.len() != fields {
            let problem = format!(
                "has {} fields, the lines before it have {fields}: all lines must have as many",
                line.len()
            );
            return Err(self.bad(line, problem));
        }
        piece.dim = fields - usize::from(self.id.is_some());
        if piece.dim == 0 {
            return Err(DataError::ZeroDimension {
                origin: self.origin.clone(),
            });
        }
        for (place, field) in line.iter().enumerate() {
            if Some(place) == self.id {
                self.identify(line, field, piece)?;
                continue;
            }
            match number(field) {
                Some(value) => piece.values.push(value),
                None => {
                    let problem = format!(
                        "field {} is `{}`, not a number: leave out columns of text, name the one of the identifiers \
                         with --ids, or set --delimiter",
                        place + 1,
                        shown(field)
                    );
                    return Err(self.bad(line, problem));
                }
            }
        }
        Ok(())
    }

    fn identify(&mut self, line: &ByteRecord, field: &[u8], piece: &mut Piece) -> Result<()> {
        let Ok(text) = std::str::from_utf8(field) else {
            return Err(self.bad(
                line,
                "the identifier is no UTF-8: convert the file".to_owned(),
            ));
        };
        let number = text.parse::<u64>().ok();
        let numbered = *self.numbered.get_or_insert(number.is_some());
        let ids = piece.ids.get_or_insert_with(|| match numbered {
            true => Identifiers::Numbers(Vec::new()),
            false => Identifiers::Strings(Vec::new()),
        });
        match (ids, number) {
            (Identifiers::Strings(ids), _) => ids.push(text.to_owned()),
            (Identifiers::Numbers(ids), Some(number)) => ids.push(number),
            (Identifiers::Numbers(_), None) => {
                let problem = format!(
                    "the identifier `{}` is no whole number from 0 on, though those before it are: write them alike",
                    shown(field)
                );
                return Err(self.bad(line, problem));
            }
        }
        Ok(())
    }

    fn piece(&mut self) -> Result<Option<Piece>> {
        let mut piece = Piece {
            values: Vec::new(),
            dim: 0,
            ids: None,
            columns: no_columns(0),
        };
        let mut count = 0;
        let mut line = ByteRecord::new();
        while count < self.rows {
            match self.first.take() {
                Some(first) => line = first,
                None => {
                    let read = self.reader.read_byte_record(&mut line);
                    if !read.map_err(|cause| unreadable(self.origin.clone(), &cause))? {
                        break;
                    }
                }
            }
            self.take(&line, &mut piece)?;
            count += 1;
        }
        piece.columns = no_columns(count);
        Ok((count > 0).then_some(piece))
    }
}

impl Iterator for Lines {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Result<Piece>> {
        self.piece().transpose()
    }
}
