//! An index that is searched and changed by identifiers, with columns beside the vectors.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use garlic_ann::live::{AttachmentChange, Kind, Options};
use garlic_ann::{Index, Live};
use garlic_any::AnyIndex;
use garlic_core::{Attached, Attachment, Cancel, Error, Result, Rows};

use crate::columns;
use crate::id::Ids;
use crate::snapshot::{Snapshot, table_of};
use crate::table::{Table, wrong_kind};

/// The identifiers and columns of the rows that an index is built from.
///
/// ```
/// use garlic_table::{FirstRows, Ids, Snapshot};
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let data: Vec<f32> = (0..400).map(|i| ((i * 37) % 101) as f32).collect();
/// let vectors = garlic_ann::Rows::new(&data, 4)?;
/// let years: ArrayRef = Arc::new(Int64Array::from_iter_values(1900..2000));
/// let columns = RecordBatch::try_from_iter([("year", years)])?;
/// let names = Ids::names((0..100).map(|i| format!("page {i}")));
///
/// let rows = FirstRows::new(vectors.len(), Some(names), Some(&columns))?;
/// let index = garlic_ann::Index::builder().build(vectors)?;
/// let pages = Snapshot::new(rows.attach(index.into()))?;
///
/// let old = pages.filter("year < 1950 AND id <> 'page 7'")?;
/// let search = garlic_ann::Search::new(1).exact(true).filter(old);
/// let answer = pages.index().search(vectors.row(7), &search)?;
/// assert_ne!(pages.id(answer.hits[0].id).to_string(), "page 7");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FirstRows {
    numbers: Option<Vec<u64>>,
    table: Option<Table>,
}

impl FirstRows {
    /// Checks identifiers and columns for `count` vectors. Without identifiers, points have the numbers of their rows.
    ///
    /// # Errors
    /// [`Error::IdCount`], [`Error::IdTwice`], [`Error::NameTwice`], [`Error::Columns`].
    pub fn new(count: usize, ids: Option<Ids>, columns: Option<&RecordBatch>) -> Result<Self> {
        check_counts(count, ids.as_ref(), columns)?;
        let is_named = matches!(ids, Some(Ids::Names(_)));
        let is_ordered = match &ids {
            Some(Ids::Numbers(numbers)) => numbers.is_sorted(),
            _ => true,
        };
        let has_columns = columns.is_some_and(|columns| columns.num_columns() > 0);
        let mut table = None;
        if is_named || has_columns || !is_ordered {
            table = Some(first_table(count, ids.as_ref(), columns, 0)?.1);
        }
        let numbers = match ids {
            Some(Ids::Numbers(numbers)) => Some(numbers),
            _ => None,
        };
        Ok(Self { numbers, table })
    }

    /// The identifiers that the builder needs, unless points have the numbers of their rows.
    pub fn numbers(&self) -> Option<&[u64]> {
        self.numbers.as_deref()
    }

    /// The index that was built from the rows, with their names and columns.
    pub fn attach(self, mut index: AnyIndex) -> AnyIndex {
        if let Some(table) = self.table {
            index.set_attachment(Attachment::new(Arc::new(table)));
        }
        index
    }
}

/// The block and the table of the first rows of an index.
fn first_table(
    count: usize,
    ids: Option<&Ids>,
    columns: Option<&RecordBatch>,
    next: u64,
) -> Result<(garlic_core::Bytes, Table, Vec<u64>)> {
    let columns = columns.map(columns::first).transpose()?;
    let schema = columns.as_ref().map(RecordBatch::schema);
    let is_named = matches!(ids, Some(Ids::Names(_)));
    let empty = Table::empty(
        is_named,
        schema.unwrap_or_else(|| Arc::new(Schema::empty())),
    );
    let new = empty.new_rows(ids, count, columns.as_ref(), next, false)?;
    let block = empty.block(&new)?;
    let table = empty.with_rows(&new);
    Ok((block, table, new.numbers))
}

fn check_counts(count: usize, ids: Option<&Ids>, columns: Option<&RecordBatch>) -> Result<()> {
    if let Some(ids) = ids {
        if ids.len() != count {
            return Err(Error::IdCount {
                vectors: count,
                ids: ids.len(),
            });
        }
        ids.check()?;
    }
    match columns {
        Some(columns) if columns.num_rows() != count => Err(Error::Columns {
            message: format!(
                "there are {count} vectors but {} rows of columns; give a row for each vector",
                columns.num_rows()
            ),
        }),
        _ => Ok(()),
    }
}

/// The numbers of points that must exist, for vectors that replace theirs.
///
/// # Errors
/// [`Error::UnknownName`], [`Error::IdKind`], [`Error::IdCount`]. Numbers are left for the index to check.
pub fn existing(index: &AnyIndex, count: usize, ids: &Ids) -> Result<Vec<u64>> {
    check_counts(count, Some(ids), None)?;
    let snapshot = Snapshot::new(index.clone())?;
    match ids {
        Ids::Numbers(numbers) if !snapshot.is_named() => Ok(numbers.clone()),
        _ => {
            let known = snapshot.numbers(ids)?.into_iter().zip(ids.iter());
            let known = known.map(|(number, id)| {
                number.ok_or_else(|| Error::UnknownName {
                    name: id.to_string(),
                })
            });
            known.collect()
        }
    }
}

/// A change of points by their identifiers, as an index takes it: by numbers, with the table after it.
#[derive(Debug)]
pub struct Change {
    /// The numbers that the index knows the points by.
    pub numbers: Vec<u64>,
    /// The block for a log, and the table after the change.
    rows: Option<(Option<garlic_core::Bytes>, Attachment)>,
}

impl Change {
    /// New points, and with `replace` also points that exist, with identifiers and columns.
    ///
    /// # Errors
    /// Those of [`Collection::add`] that are not about vectors.
    pub fn put(
        index: &AnyIndex,
        count: usize,
        ids: Option<&Ids>,
        columns: Option<&RecordBatch>,
        replace: bool,
    ) -> Result<Self> {
        check_counts(count, ids, columns)?;
        let next = index.next_id();
        let (block, table, numbers) = match table_of(&**index)? {
            Some(table) => {
                let new = table.new_rows(ids, count, columns, next, replace)?;
                (table.block(&new)?, table.with_rows(&new), new.numbers)
            }
            // The first points of an index decide what it keeps.
            None if wants_table(ids, columns) && is_fresh(index) => {
                first_table(count, ids, columns, next)?
            }
            None => return Self::without_table(count, ids, columns, next),
        };
        let table: Arc<dyn Attached> = Arc::new(table);
        Ok(Self {
            numbers,
            rows: Some((Some(block), Attachment::new(table))),
        })
    }

    /// Points of an index that has no table and gets none.
    fn without_table(
        count: usize,
        ids: Option<&Ids>,
        columns: Option<&RecordBatch>,
        next: u64,
    ) -> Result<Self> {
        if let Some(columns) = columns.filter(|columns| columns.num_columns() > 0) {
            return Err(Error::Columns {
                message: format!(
                    "there is no column `{}`: the index has no columns; build it with them",
                    columns.schema().field(0).name()
                ),
            });
        }
        let numbers = match ids {
            Some(Ids::Numbers(numbers)) => numbers.clone(),
            Some(Ids::Names(_)) => return Err(wrong_kind(false)),
            None => (next..).take(count).collect(),
        };
        Ok(Self {
            numbers,
            rows: None,
        })
    }

    /// New vectors for points that exist.
    ///
    /// # Errors
    /// Those of [`existing`].
    pub fn update(index: &AnyIndex, count: usize, ids: &Ids) -> Result<Self> {
        let numbers = existing(index, count, ids)?;
        Ok(Self {
            numbers,
            rows: None,
        })
    }

    /// Points that go. Identifiers that there are not are ignored.
    ///
    /// # Errors
    /// [`Error::IdKind`].
    pub fn remove(index: &AnyIndex, ids: &Ids) -> Result<Self> {
        let snapshot = Snapshot::new(index.clone())?;
        let numbers = snapshot.numbers(ids)?;
        let numbers: Vec<u64> = numbers.into_iter().flatten().collect();
        let rows = snapshot.table().map(|table| {
            let table: Arc<dyn Attached> = Arc::new(table.without(&numbers));
            (None, Attachment::new(table))
        });
        Ok(Self { numbers, rows })
    }

    /// Changes an index in memory, rows included, and returns how many points were changed. On an error it is unchanged.
    ///
    /// # Errors
    /// Those of [`AnyIndex::add`], [`AnyIndex::update`], [`AnyIndex::upsert`] and [`AnyIndex::remove`].
    pub fn apply(&self, index: &mut AnyIndex, kind: Kind, vectors: Rows<'_>) -> Result<usize> {
        let ids = &self.numbers;
        let changed = match kind {
            Kind::Remove => index.remove(ids)?,
            Kind::Add => index.add(vectors, ids).map(|()| ids.len())?,
            Kind::Update => index.update(vectors, ids).map(|()| ids.len())?,
            // Upsert. A later kind that is not known here would be one that gives vectors, too.
            _ => index.upsert(vectors, ids).map(|()| ids.len())?,
        };
        if let Some(attached) = self.attached() {
            index.set_attachment(attached.after);
        }
        Ok(changed)
    }

    /// What the change makes of the attachment of the index.
    pub fn attached(&self) -> Option<AttachmentChange<'_>> {
        let (block, after) = self.rows.as_ref()?;
        Some(AttachmentChange {
            block: block.as_deref(),
            after: after.clone(),
        })
    }
}

/// An index whose points have names or numbers and may have columns: in memory, in a file or in a directory.
///
/// Searches run on a [`Snapshot`] and never wait. Changes take turns. In a directory, the rows of a batch are in the
/// same record of the log as its vectors, so that a crash never separates them.
#[derive(Debug)]
pub struct Collection {
    kept: Kept,
    /// Held while a change is prepared and made.
    writing: Mutex<()>,
}

/// Where the index is.
#[derive(Debug)]
enum Kept {
    /// It can be changed while it is searched.
    Live(Box<Live>),
    /// One of the published method, in memory. A change is made beside it and takes its place.
    Memory(Box<Mutex<AnyIndex>>),
}

impl From<Live> for Collection {
    fn from(live: Live) -> Self {
        Self {
            kept: Kept::Live(Box::new(live)),
            writing: Mutex::default(),
        }
    }
}

impl From<AnyIndex> for Collection {
    /// The index in memory.
    fn from(index: AnyIndex) -> Self {
        match index.updatable() {
            Ok(index) => Live::new(index.clone()).into(),
            Err(_) => Self {
                kept: Kept::Memory(Box::new(Mutex::new(index))),
                writing: Mutex::default(),
            },
        }
    }
}

impl From<Index> for Collection {
    fn from(index: Index) -> Self {
        AnyIndex::from(index).into()
    }
}

impl Collection {
    /// Creates an index directory; see [`Live::create`].
    ///
    /// # Errors
    /// Those of [`Live::create`], and [`Error::Unchanging`].
    pub fn create(directory: &Path, index: &AnyIndex, options: &Options) -> Result<Self> {
        let live = options.create(directory, index.updatable()?.clone())?;
        Ok(live.into())
    }

    /// Opens an index directory for writing; see [`Live::open`].
    ///
    /// # Errors
    /// Those of [`Live::open`].
    pub fn open(directory: &Path, options: &Options) -> Result<Self> {
        Ok(options.open(directory)?.into())
    }

    /// Opens an index directory for reading; see [`Live::open_read_only`].
    ///
    /// # Errors
    /// Those of [`Live::open_read_only`].
    pub fn open_read_only(directory: &Path) -> Result<Self> {
        Ok(Live::open_read_only(directory)?.into())
    }

    /// The index and its table as they are now.
    ///
    /// # Errors
    /// [`Error::Columns`] if the table is damaged.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::new(self.index())
    }

    /// The index as it is now.
    pub fn index(&self) -> AnyIndex {
        match &self.kept {
            Kept::Live(live) => (*live.snapshot()).clone().into(),
            Kept::Memory(index) => AnyIndex::clone(&locked(index)),
        }
    }

    /// The handle for everything that does not change points. Points that are changed by it have no names and columns.
    ///
    /// # Errors
    /// [`Error::Unchanging`] for an index of the published method.
    pub fn live(&self) -> Result<&Live> {
        match &self.kept {
            Kept::Live(live) => Ok(live),
            Kept::Memory(_) => Err(Error::Unchanging),
        }
    }

    /// Makes a change of points that is prepared for the index as it is now.
    fn apply(&self, kind: Kind, vectors: Rows<'_>, change: &Change) -> Result<usize> {
        match &self.kept {
            Kept::Live(live) => live.apply(kind, vectors, &change.numbers, change.attached()),
            Kept::Memory(index) => {
                let mut next = self.index();
                let changed = change.apply(&mut next, kind, vectors)?;
                *locked(index) = next;
                Ok(changed)
            }
        }
    }

    /// Adds points, all or none, and returns their identifiers: those that were given, or numbers after the largest.
    ///
    /// The first points of an empty index decide whether points have names, and which columns there are. Columns that
    /// later points do not have are null.
    ///
    /// # Errors
    /// Those of [`Live::add`]; [`Error::NameExists`], [`Error::NameTwice`], [`Error::IdKind`], [`Error::Columns`].
    pub fn add(
        &self,
        vectors: Rows<'_>,
        ids: Option<Ids>,
        columns: Option<&RecordBatch>,
    ) -> Result<Ids> {
        let given = self.put(Kind::Add, vectors, ids.as_ref(), columns)?;
        Ok(ids.unwrap_or(Ids::Numbers(given)))
    }

    /// Adds points, and replaces the vectors and columns of those that exist, all or none. Columns that are not given are
    /// null.
    ///
    /// # Errors
    /// Those of [`Collection::add`], except that identifiers may exist.
    pub fn upsert(
        &self,
        vectors: Rows<'_>,
        ids: &Ids,
        columns: Option<&RecordBatch>,
    ) -> Result<()> {
        self.put(Kind::Upsert, vectors, Some(ids), columns)?;
        Ok(())
    }

    fn put(
        &self,
        kind: Kind,
        vectors: Rows<'_>,
        ids: Option<&Ids>,
        columns: Option<&RecordBatch>,
    ) -> Result<Vec<u64>> {
        let _turn = self.turn()?;
        let replace = kind == Kind::Upsert;
        let change = Change::put(&self.index(), vectors.len(), ids, columns, replace)?;
        self.apply(kind, vectors, &change)?;
        Ok(change.numbers)
    }

    /// Replaces the vectors of points, all or none. Their columns stay.
    ///
    /// # Errors
    /// Those of [`Live::update`], [`Error::UnknownName`], [`Error::IdKind`].
    pub fn update(&self, vectors: Rows<'_>, ids: &Ids) -> Result<()> {
        let _turn = self.turn()?;
        let change = Change::update(&self.index(), vectors.len(), ids)?;
        self.apply(Kind::Update, vectors, &change)?;
        Ok(())
    }

    /// Removes points and returns how many there were. Identifiers that there are not are ignored.
    ///
    /// # Errors
    /// Those of [`Live::remove`], [`Error::IdKind`].
    pub fn remove(&self, ids: &Ids) -> Result<usize> {
        let _turn = self.turn()?;
        self.remove_in_turn(ids)
    }

    /// Removes the points for which an expression over the columns and `id` is true, and returns how many there were. No
    /// other change comes between finding and removing them.
    ///
    /// # Errors
    /// Those of [`Live::remove`], [`Error::Expression`].
    pub fn remove_where(&self, expression: &str) -> Result<usize> {
        let _turn = self.turn()?;
        let ids = self.snapshot()?.ids_where(expression)?;
        self.remove_in_turn(&ids)
    }

    fn remove_in_turn(&self, ids: &Ids) -> Result<usize> {
        let (change, dim) = (Change::remove(&self.index(), ids)?, self.index().dim());
        self.apply(Kind::Remove, Rows::new(&[], dim)?, &change)
    }

    /// Waits until no other change is made. Who has given up meanwhile changes nothing.
    fn turn(&self) -> Result<MutexGuard<'_, ()>> {
        let turn = locked(&self.writing);
        Cancel::current().check()?;
        Ok(turn)
    }

    /// Drops removed points and encodes the others anew, rows included; see [`Live::compact`].
    ///
    /// # Errors
    /// Those of [`Live::compact`].
    pub fn compact(&self) -> Result<()> {
        let live = self.live()?;
        let _turn = self.turn()?;
        // Decoded, the table is written without the rows of removed points.
        table_of(&*live.snapshot())?;
        live.compact()
    }
}

/// What a lock guards; a panic elsewhere cannot have left half a change.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wants_table(ids: Option<&Ids>, columns: Option<&RecordBatch>) -> bool {
    let has_columns = columns.is_some_and(|columns| columns.num_columns() > 0);
    let is_ordered = match ids {
        Some(Ids::Numbers(numbers)) => numbers.is_sorted(),
        Some(Ids::Names(_)) => false,
        None => true,
    };
    has_columns || !is_ordered
}

/// Whether an index has never had points.
fn is_fresh(index: &AnyIndex) -> bool {
    index.is_empty() && index.next_id() == 0
}

/// Checks everything in an index file, rows included; see [`AnyIndex::verify`].
///
/// # Errors
/// Those of [`AnyIndex::verify`], and [`Error::Columns`] for a table that does not fit its index.
pub fn verify(path: &Path) -> Result<garlic_core::file::Summary> {
    let summary = AnyIndex::verify(path)?;
    let snapshot = Snapshot::new(AnyIndex::open(path)?)?;
    check_table(&snapshot)?;
    Ok(summary)
}

/// Fails unless every point of a snapshot has a row, and every name is there once.
///
/// # Errors
/// [`Error::Columns`].
pub fn check_table(snapshot: &Snapshot) -> Result<()> {
    let Some(table) = snapshot.table() else {
        return Ok(());
    };
    let wrong = |message: String| Err(Error::Columns { message });
    if table.len() != snapshot.index().len() {
        return wrong(format!(
            "the table of the index is damaged: it has {} rows, the index {} points",
            table.len(),
            snapshot.index().len()
        ));
    }
    snapshot
        .ids()
        .check()
        .or_else(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests;
