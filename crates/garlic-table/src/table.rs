//! The table beside an index: a row for every point, with its name and its columns.
//!
//! A table does not change. A change makes a new one, which shares all rows with the old one: new rows are a new
//! [`Chunk`], and old rows are marked as dead. Chunks of similar size are merged, so that there are few of them and each
//! row is copied a logarithmic number of times.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, LargeStringArray, RecordBatch, UInt32Array, new_empty_array};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::concat::{concat, concat_batches};
use arrow_select::take::{take, take_record_batch};
use garlic_core::{Attached, Bytes, Error, Filter, Result, RoaringTreemap};

use crate::chunk::{Chunk, id_type};
use crate::columns::{self, ID};
use crate::encode;
use crate::expr::Expression;
use crate::id::{Id, Ids};

/// A chunk is merged with the one before it unless that has more than this many times its rows.
const MERGE_FACTOR: usize = 2;
/// Number of filters that are kept for a state of the table.
const MAX_FILTERS: usize = 64;

/// Names and columns of the points of an index.
pub struct Table {
    named: bool,
    schema: SchemaRef,
    chunks: Vec<Chunk>,
    /// Number of rows that were given so far, and number of the next one.
    rows: u64,
    /// Filters by the text of their expression.
    filters: Mutex<HashMap<String, Filter>>,
}

/// New rows as a table takes them, with the numbers that the index knows the points by.
pub(crate) struct NewRows {
    pub(crate) numbers: Vec<u64>,
    chunk: Chunk,
    /// Number of rows after these.
    rows: u64,
}

impl Table {
    /// An empty table, whose points have names or numbers.
    pub(crate) fn empty(named: bool, schema: SchemaRef) -> Self {
        Self {
            named,
            schema,
            chunks: Vec::new(),
            rows: 0,
            filters: Mutex::default(),
        }
    }

    /// Whether points have names.
    pub fn is_named(&self) -> bool {
        self.named
    }

    /// The columns, without the identifiers.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Number of rows that were given so far, including those of points that were removed.
    pub fn rows_given(&self) -> u64 {
        self.rows
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(Chunk::live).sum()
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of a point.
    fn locate(&self, number: u64) -> Option<(&Chunk, u32)> {
        let found = |chunk| Some((chunk, Chunk::position(chunk, number)?));
        self.chunks.iter().rev().find_map(found)
    }

    /// The number that the index knows a name by.
    pub fn number(&self, name: &str) -> Option<u64> {
        let found = |chunk: &Chunk| Some(chunk.id(chunk.position_of_name(name)?));
        self.chunks.iter().rev().find_map(found)
    }

    /// The identifier of a point that the index knows by a number.
    pub fn identifier(&self, number: u64) -> Option<Id> {
        let (chunk, at) = self.locate(number)?;
        Some(chunk.identifier(at))
    }

    /// The name of a point that the index knows by a number.
    pub fn name(&self, number: u64) -> Option<&str> {
        let (chunk, at) = self.locate(number)?;
        chunk.name(at)
    }

    /// New rows under new identifiers, or also under those that exist if `replace`. Points of a table with numbers get
    /// `ids`; without them, the numbers from `next` on.
    pub(crate) fn new_rows(
        &self,
        ids: Option<&Ids>,
        count: usize,
        columns: Option<&RecordBatch>,
        next: u64,
        replace: bool,
    ) -> Result<NewRows> {
        let columns = columns::conform(columns, count, &self.schema)?;
        let mut rows = self.rows;
        let mut new_row = || {
            rows += 1;
            rows - 1
        };
        let (numbers, numbered, names): (Vec<u64>, Vec<u64>, _) = match (ids, self.named) {
            (Some(Ids::Names(names)), true) => {
                let mut numbers = Vec::with_capacity(names.len());
                for name in names {
                    numbers.push(match self.number(name) {
                        Some(_) if !replace => {
                            return Err(Error::NameExists { name: name.clone() });
                        }
                        // A name keeps its number, which is that of its first row.
                        Some(number) => number,
                        None => new_row(),
                    });
                }
                let names = LargeStringArray::from_iter_values(names);
                (numbers.clone(), numbers, Some(names))
            }
            (given, false) => {
                let numbers = match given {
                    Some(Ids::Numbers(numbers)) => numbers.clone(),
                    Some(Ids::Names(_)) => return Err(wrong_kind(false)),
                    None => (next..).take(count).collect(),
                };
                let known = |id: &u64| self.locate(*id).map(|(chunk, at)| chunk.row(at));
                let numbered = numbers
                    .iter()
                    .map(|id| known(id).unwrap_or_else(&mut new_row));
                let numbered = numbered.collect();
                (numbers, numbered, None)
            }
            (Some(Ids::Numbers(_)) | None, true) => return Err(wrong_kind(true)),
        };
        Ok(NewRows {
            chunk: Chunk::new(numbered, numbers.clone(), names, columns),
            numbers,
            rows,
        })
    }

    /// The table with new rows, which replace older ones of the same points.
    pub(crate) fn with_rows(&self, new: &NewRows) -> Self {
        let mut chunks = self.without(&new.numbers).chunks;
        chunks.push(new.chunk.clone());
        while let [.., before, last] = &*chunks
            && before.live() <= MERGE_FACTOR * last.live()
        {
            // Text beyond 2 GiB does not fit one chunk, and need not.
            let Ok(merged) = self.merged(&[before.clone(), last.clone()]) else {
                break;
            };
            chunks.truncate(chunks.len() - 2);
            chunks.push(merged);
        }
        self.with_chunks(chunks, new.rows)
    }

    /// The table without the rows of some points.
    pub(crate) fn without(&self, numbers: &[u64]) -> Self {
        let mut chunks = self.chunks.clone();
        for chunk in &mut chunks {
            let dead: Vec<u32> = numbers
                .iter()
                .filter_map(|id| chunk.position(*id))
                .collect();
            if !dead.is_empty() {
                *chunk = chunk.without(dead);
            }
        }
        chunks.retain(|chunk| chunk.live() > 0);
        self.with_chunks(chunks, self.rows)
    }

    /// The table without the rows of points that do not exist.
    pub(crate) fn only(&self, exists: impl Fn(u64) -> bool) -> Self {
        let mut chunks = self.chunks.clone();
        for chunk in &mut chunks {
            let gone = chunk.live_positions().filter(|at| !exists(chunk.id(*at)));
            let gone: Vec<u32> = gone.collect();
            if !gone.is_empty() {
                *chunk = chunk.without(gone);
            }
        }
        chunks.retain(|chunk| chunk.live() > 0);
        self.with_chunks(chunks, self.rows)
    }

    fn with_chunks(&self, chunks: Vec<Chunk>, rows: u64) -> Self {
        Self {
            named: self.named,
            schema: Arc::clone(&self.schema),
            chunks,
            rows,
            filters: Mutex::default(),
        }
    }

    /// The live rows of some chunks as one.
    fn merged(&self, chunks: &[Chunk]) -> Result<Chunk> {
        let mut parts = Vec::new();
        let (mut rows, mut ids) = (Vec::new(), Vec::new());
        let mut names = Vec::new();
        for chunk in chunks {
            let live: Vec<u32> = chunk.live_positions().collect();
            rows.extend(live.iter().map(|at| chunk.row(*at)));
            ids.extend(live.iter().map(|at| chunk.id(*at)));
            names.extend(live.iter().filter_map(|at| chunk.name(*at)));
            let columns = chunk.columns();
            parts.push(match live.len() == chunk.len() {
                true => columns.clone(),
                false => taken(columns, &UInt32Array::from(live))?,
            });
        }
        let names = self
            .named
            .then(|| LargeStringArray::from_iter_values(&names));
        let columns = match self.schema.fields().is_empty() {
            true => columns::batch(Arc::clone(&self.schema), Vec::new(), ids.len())?,
            false => concat_batches(&self.schema, &parts).map_err(failed)?,
        };
        Ok(Chunk::new(rows, ids, names, columns))
    }

    /// The filter of an expression. It is evaluated once for every state of the table.
    ///
    /// # Errors
    /// [`Error::Expression`].
    pub fn filter(&self, expression: &str) -> Result<Filter> {
        let filters = || self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = filters().get(expression) {
            return Ok(known.clone());
        }
        let filter = Filter::bitmap(self.matching(&Expression::parse(expression)?)?);
        let mut filters = filters();
        if filters.len() >= MAX_FILTERS {
            filters.clear();
        }
        // Another thread may have evaluated the same expression; then all share one filter and its translations.
        let kept = filters.entry(expression.to_owned()).or_insert(filter);
        Ok(kept.clone())
    }

    /// The points for which an expression is true.
    pub(crate) fn matching(&self, expression: &Expression) -> Result<RoaringTreemap> {
        // Wrong names and types are errors without rows, too.
        expression.evaluate(&RecordBatch::new_empty(self.visible_schema()))?;
        let mut found = Vec::new();
        for chunk in &self.chunks {
            let truth = expression.evaluate(&chunk.visible()?)?;
            let is_true = |at: &u32| truth.is_valid(*at as usize) && truth.value(*at as usize);
            let positions = chunk.live_positions().filter(is_true);
            found.extend(positions.map(|at| chunk.id(at)));
        }
        found.sort_unstable();
        Ok(found.into_iter().collect())
    }

    /// The columns as filters know them: the identifiers first.
    pub fn visible_schema(&self) -> SchemaRef {
        let id = Field::new(ID, id_type(self.named), false);
        let mut fields = vec![Arc::new(id)];
        fields.extend(self.schema.fields().iter().cloned());
        Arc::new(Schema::new(fields))
    }

    /// The points that a mask allows. It has an entry for every row that was given, in the order in which they were.
    pub(crate) fn masked(&self, mask: &[bool]) -> Result<Vec<u64>> {
        if mask.len() as u64 != self.rows {
            return Err(Error::MaskLength {
                entries: mask.len(),
                rows: self.rows,
            });
        }
        let allowed = |chunk: &Chunk, at: &u32| mask.get(chunk.row(*at) as usize) == Some(&true);
        let mut found = Vec::new();
        for chunk in &self.chunks {
            let positions = chunk.live_positions().filter(|at| allowed(chunk, at));
            found.extend(positions.map(|at| chunk.id(at)));
        }
        Ok(found)
    }

    /// Some columns of some points, a row for each; null where there is no point. `names` are in the order that is
    /// wanted, and may have `id`.
    ///
    /// # Errors
    /// [`Error::Columns`] for a column that does not exist.
    pub fn gather(&self, numbers: &[Option<u64>], names: &[String]) -> Result<RecordBatch> {
        let mut places = Vec::with_capacity(numbers.len());
        for number in numbers {
            places.push(number.and_then(|number| {
                let with = |(of, chunk): (usize, &Chunk)| Some((of, chunk.position(number)?));
                self.chunks.iter().enumerate().rev().find_map(with)
            }));
        }
        // One array of all chunks would copy them; take from each what is asked for, then put it in order.
        let mut asked: Vec<Vec<u32>> = vec![Vec::new(); self.chunks.len()];
        let mut order = Vec::with_capacity(places.len());
        for place in &places {
            order.push(place.map(|(of, at)| {
                asked[of].push(at);
                (of, asked[of].len() as u32 - 1)
            }));
        }
        let starts: Vec<u32> = asked
            .iter()
            .scan(0, |start, some| {
                let here = *start;
                *start += some.len() as u32;
                Some(here)
            })
            .collect();
        let order: UInt32Array = order
            .iter()
            .map(|place| place.map(|(of, at)| starts[of] + at))
            .collect();
        let visible = self.visible_schema();
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for name in names {
            let Some((at, field)) = visible.column_with_name(name) else {
                return Err(Error::Columns {
                    message: format!(
                        "there is no column `{name}`; {}",
                        crate::expr::columns(&visible)
                    ),
                });
            };
            let mut parts = Vec::new();
            for (chunk, some) in self
                .chunks
                .iter()
                .zip(&asked)
                .filter(|(_, some)| !some.is_empty())
            {
                let column = match at.checked_sub(1) {
                    Some(at) => Arc::clone(chunk.columns().column(at)),
                    None => Arc::clone(chunk.visible()?.column(0)),
                };
                parts.push(take(&column, &UInt32Array::from(some.clone()), None).map_err(failed)?);
            }
            let parts: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
            let all = match parts.is_empty() {
                true => new_empty_array(field.data_type()),
                false => concat(&parts).map_err(failed)?,
            };
            arrays.push(take(&all, &order, None).map_err(failed)?);
            fields.push(Field::new(name, field.data_type().clone(), true));
        }
        columns::batch(Arc::new(Schema::new(fields)), arrays, numbers.len())
    }

    /// All rows in the order in which they were given, in batches of at most `size` rows.
    pub(crate) fn batches(&self, size: usize) -> Result<Vec<(Chunk, RecordBatch)>> {
        let mut places: Vec<(u64, usize, u32)> = Vec::with_capacity(self.len());
        for (of, chunk) in self.chunks.iter().enumerate() {
            places.extend(chunk.live_positions().map(|at| (chunk.row(at), of, at)));
        }
        places.sort_unstable();
        let mut batches = Vec::new();
        for some in places.chunks(size) {
            let numbers = some
                .iter()
                .map(|(_, of, at)| Some(self.chunks[*of].id(*at)));
            let numbers: Vec<Option<u64>> = numbers.collect();
            let names = self
                .schema
                .fields()
                .iter()
                .map(|field| field.name().clone());
            let columns = self.gather(&numbers, &names.collect::<Vec<_>>())?;
            let columns = columns::conform(Some(&columns), numbers.len(), &self.schema)?;
            let names = some
                .iter()
                .filter_map(|(_, of, at)| self.chunks[*of].name(*at));
            let names = self
                .named
                .then(|| LargeStringArray::from_iter_values(names));
            let rows = some.iter().map(|(row, ..)| *row).collect();
            let ids = numbers.into_iter().flatten().collect();
            let chunk = Chunk::new(rows, ids, names, columns.clone());
            batches.push((chunk, columns));
        }
        Ok(batches)
    }

    /// All rows with their identifiers as the column `id`, in the order in which they were given.
    ///
    /// # Errors
    /// Fails if a text column is too large for one batch.
    pub fn to_batches(&self) -> Result<Vec<RecordBatch>> {
        let all = self.batches(encode::BATCH_ROWS)?;
        all.iter().map(|(chunk, _)| chunk.visible()).collect()
    }

    /// The block of new rows for a log.
    pub(crate) fn block(&self, new: &NewRows) -> Result<Bytes> {
        encode::block(
            self.named,
            &self.schema,
            std::slice::from_ref(&new.chunk),
            new.rows,
        )
    }

    /// Takes the rows of a block, which replace older ones.
    pub(crate) fn take_rows(&self, chunk: Chunk, rows: u64) -> Self {
        let numbers = (0..chunk.len() as u32).map(|at| chunk.id(at)).collect();
        self.with_rows(&NewRows {
            numbers,
            chunk,
            rows: rows.max(self.rows),
        })
    }
}

fn taken(columns: &RecordBatch, positions: &UInt32Array) -> Result<RecordBatch> {
    match columns.num_columns() {
        0 => columns::batch(columns.schema(), Vec::new(), positions.len()),
        _ => take_record_batch(columns, positions).map_err(failed),
    }
}

fn failed(error: arrow_schema::ArrowError) -> Error {
    Error::Columns {
        message: error.to_string(),
    }
}

/// The error of identifiers that are not of the index's kind.
pub(crate) fn wrong_kind(named: bool) -> Error {
    Error::IdKind {
        message: match named {
            true => "the points of this index have names; give each a name (text), not a number",
            false => "the points of this index are numbered; give whole numbers, not names",
        }
        .into(),
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.named { "named" } else { "numbered" };
        let columns: Vec<&String> = self.schema.fields().iter().map(|f| f.name()).collect();
        write!(f, "Table({} {kind} rows, columns {columns:?})", self.len())
    }
}

impl Attached for Table {
    fn to_blocks(&self) -> io::Result<Vec<Bytes>> {
        let chunks = self.batches(encode::BATCH_ROWS).map_err(io::Error::other)?;
        let chunks: Vec<Chunk> = chunks.into_iter().map(|(chunk, _)| chunk).collect();
        let block = encode::block(self.named, &self.schema, &chunks, self.rows);
        Ok(vec![block.map_err(io::Error::other)?])
    }
}
