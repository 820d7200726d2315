//! An index and its table at one moment.

use std::any::Any;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use garlic_any::AnyIndex;
use garlic_core::{Attached, Error, Filter, NeighborIndex, Result, RoaringTreemap};

use crate::columns::{self, ID};
use crate::encode;
use crate::expr::{Expression, type_name};
use crate::id::{Id, Ids};
use crate::table::{Table, wrong_kind};

/// An index with the names and columns of its points, if it has them. It does not change.
#[derive(Clone, Debug)]
pub struct Snapshot {
    index: AnyIndex,
    table: Option<Arc<Table>>,
}

/// The table that is attached to an index.
///
/// # Errors
/// [`Error::Columns`] if it is damaged.
pub(crate) fn table_of(index: &dyn NeighborIndex) -> Result<Option<Arc<Table>>> {
    let decode = |blocks: &[garlic_core::Bytes]| -> Result<Arc<dyn Attached>> {
        let table = encode::decode(blocks)?.only(|id| index.contains(id));
        Ok(Arc::new(table))
    };
    let Some(value) = index.attachment().value(decode)? else {
        return Ok(None);
    };
    let value: Arc<dyn Any + Send + Sync> = value;
    let table = value.downcast::<Table>();
    table.map(Some).map_err(|_| Error::Columns {
        message: "the index carries something that is no table".into(),
    })
}

/// Numbers as rows with the column `id`.
fn numbered(ids: Vec<u64>) -> Result<RecordBatch> {
    let schema = Schema::new(vec![Field::new(ID, DataType::UInt64, false)]);
    let count = ids.len();
    let ids = UInt64Array::from(ids);
    columns::batch(Arc::new(schema), vec![Arc::new(ids)], count)
}

impl Snapshot {
    /// Looks at an index with its table.
    ///
    /// # Errors
    /// [`Error::Columns`] if the table is damaged.
    pub fn new(index: AnyIndex) -> Result<Self> {
        let table = table_of(&*index)?;
        Ok(Self { index, table })
    }

    /// The index, which knows points by numbers.
    pub fn index(&self) -> &AnyIndex {
        &self.index
    }

    /// The table, if there is one.
    pub fn table(&self) -> Option<&Arc<Table>> {
        self.table.as_ref()
    }

    /// Whether points have names.
    pub fn is_named(&self) -> bool {
        self.table.as_ref().is_some_and(|table| table.is_named())
    }

    /// The numbers that the index knows points by; none for identifiers that there are not.
    ///
    /// # Errors
    /// [`Error::IdKind`] for names where points are numbered, and the other way round.
    pub fn numbers(&self, ids: &Ids) -> Result<Vec<Option<u64>>> {
        match (ids, &self.table) {
            (Ids::Names(names), Some(table)) if table.is_named() => {
                let known = |name: &String| {
                    let number = table.number(name);
                    number.filter(|number| self.index.contains(*number))
                };
                Ok(names.iter().map(known).collect())
            }
            (Ids::Numbers(numbers), _) if !self.is_named() => {
                let known = |id: &u64| self.index.contains(*id).then_some(*id);
                Ok(numbers.iter().map(known).collect())
            }
            _ if ids.is_empty() => Ok(Vec::new()),
            _ => Err(wrong_kind(self.is_named())),
        }
    }

    /// The identifier of a point that the index knows by a number.
    pub fn id(&self, number: u64) -> Id {
        match self.table.as_ref().and_then(|table| table.name(number)) {
            Some(name) => Id::Name(name.to_owned()),
            None => Id::Number(number),
        }
    }

    /// The identifiers of all points: numbers in ascending order, names in the order in which they were given.
    pub fn ids(&self) -> Ids {
        let mut numbers = self.index.ids();
        numbers.sort_unstable();
        self.known_as(numbers)
    }

    /// The identifiers of the points for which an expression over the columns and `id` is true, in the same order.
    ///
    /// # Errors
    /// [`Error::Expression`].
    pub fn ids_where(&self, expression: &str) -> Result<Ids> {
        let numbers = self.matching(expression)?.into_iter().collect();
        Ok(self.known_as(numbers))
    }

    fn known_as(&self, numbers: Vec<u64>) -> Ids {
        match self.is_named() {
            false => Ids::Numbers(numbers),
            true => Ids::Names(numbers.iter().map(|id| self.id(*id).to_string()).collect()),
        }
    }

    /// The columns, with their types as messages name them, such as `int64` and `text`.
    pub fn column_types(&self) -> Vec<(String, String)> {
        let schema = self.table.as_ref().map(|table| Arc::clone(table.schema()));
        let fields = schema.iter().flat_map(|schema| schema.fields().iter());
        let typed = fields.map(|field| (field.name().clone(), type_name(field.data_type())));
        typed.collect()
    }

    /// The filter of an expression over the columns and `id`.
    ///
    /// # Errors
    /// [`Error::Expression`].
    pub fn filter(&self, expression: &str) -> Result<Filter> {
        match &self.table {
            Some(table) => table.filter(expression),
            None => self.matching(expression).map(Filter::bitmap),
        }
    }

    /// The numbers of the points for which an expression is true.
    ///
    /// # Errors
    /// [`Error::Expression`].
    pub fn matching(&self, expression: &str) -> Result<RoaringTreemap> {
        let expression = Expression::parse(expression)?;
        match &self.table {
            Some(table) => table.matching(&expression),
            None => self.matching_numbers(&expression),
        }
    }

    /// [`Snapshot::matching`] for an index without a table.
    fn matching_numbers(&self, expression: &Expression) -> Result<RoaringTreemap> {
        let ids = self.index.ids();
        let truth = expression.evaluate(&numbered(ids.clone())?)?;
        let allowed = ids.into_iter().zip(truth.iter());
        let allowed = allowed.filter(|(_, truth)| *truth == Some(true));
        Ok(allowed.map(|(id, _)| id).collect())
    }

    /// The filter that allows some identifiers. Those that there are not are ignored.
    ///
    /// # Errors
    /// [`Error::IdKind`].
    pub fn filter_ids(&self, ids: &Ids) -> Result<Filter> {
        let numbers = self.numbers(ids)?;
        Ok(Filter::ids(
            numbers.into_iter().flatten().collect::<Vec<u64>>(),
        ))
    }

    /// The filter of a mask: an entry for every row that was given, in the order in which they were given to the build
    /// and then to `add`. Rows of points that were removed keep their entry.
    ///
    /// An index whose points have numbers of their own and no table does not know their order. Rows count in the order
    /// of their numbers then, and only those of points that there are.
    ///
    /// # Errors
    /// [`Error::MaskLength`] for a mask of another length.
    pub fn filter_mask(&self, mask: &[bool]) -> Result<Filter> {
        let allowed = match &self.table {
            Some(table) => table.masked(mask)?,
            None => {
                let given = self.index.next_id();
                let pick = |(row, allowed): (u64, &bool)| allowed.then_some(row);
                let rows: Vec<u64> = (0..).zip(mask).filter_map(pick).collect();
                if mask.len() as u64 == given {
                    rows
                } else if mask.len() == self.index.len() {
                    let mut ids = self.index.ids();
                    ids.sort_unstable();
                    rows.into_iter().map(|row| ids[row as usize]).collect()
                } else {
                    return Err(Error::MaskLength {
                        entries: mask.len(),
                        rows: given,
                    });
                }
            }
        };
        Ok(Filter::ids(allowed))
    }

    /// Identifiers, as the column `id`, and columns of all points: in the order in which rows were given, or in that of
    /// the numbers if there is no table.
    ///
    /// # Errors
    /// Fails if a text column is too large for one batch.
    pub fn to_batches(&self) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        match &self.table {
            Some(table) => Ok((table.visible_schema(), table.to_batches()?)),
            None => {
                let mut ids = self.index.ids();
                ids.sort_unstable();
                let rows = numbered(ids)?;
                Ok((rows.schema(), vec![rows]))
            }
        }
    }

    /// Some columns of some points, a row for each; null where there is no point.
    ///
    /// # Errors
    /// [`Error::Columns`] for a column that does not exist.
    pub fn columns(&self, numbers: &[Option<u64>], names: &[String]) -> Result<RecordBatch> {
        match &self.table {
            Some(table) => table.gather(numbers, names),
            None => Table::empty(false, Arc::new(Schema::empty())).gather(numbers, names),
        }
    }
}
