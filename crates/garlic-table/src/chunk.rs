//! Some rows of a table, in the order in which they were given. They do not change; rows that are gone are marked.

use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef, LargeStringArray, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use garlic_core::{IdLookup, Result};
use roaring::RoaringBitmap;

use crate::columns::{self, ID};
use crate::id::Id;

/// Rows of a table. Cloning is cheap.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    data: Arc<Data>,
    /// Rows of points that were removed or have a later row.
    dead: Arc<RoaringBitmap>,
}

#[derive(Debug)]
struct Data {
    /// Number of each row: how many were given before it.
    rows: Vec<u64>,
    /// Number of each point in the index.
    ids: Vec<u64>,
    names: Option<LargeStringArray>,
    columns: RecordBatch,
    by_id: OnceLock<IdLookup>,
    /// Positions in the order of the names.
    by_name: OnceLock<Vec<u32>>,
}

impl Chunk {
    pub(crate) fn new(
        rows: Vec<u64>,
        ids: Vec<u64>,
        names: Option<LargeStringArray>,
        columns: RecordBatch,
    ) -> Self {
        Self {
            data: Arc::new(Data {
                rows,
                ids,
                names,
                columns,
                by_id: OnceLock::new(),
                by_name: OnceLock::new(),
            }),
            dead: Arc::default(),
        }
    }

    /// Number of rows, dead ones included.
    pub(crate) fn len(&self) -> usize {
        self.data.ids.len()
    }

    /// Number of rows of points that there are.
    pub(crate) fn live(&self) -> usize {
        self.len() - self.dead.len() as usize
    }

    pub(crate) fn is_live(&self, at: u32) -> bool {
        !self.dead.contains(at)
    }

    /// Positions of the rows that are not dead.
    pub(crate) fn live_positions(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len() as u32).filter(|at| self.is_live(*at))
    }

    pub(crate) fn id(&self, at: u32) -> u64 {
        self.data.ids[at as usize]
    }

    pub(crate) fn row(&self, at: u32) -> u64 {
        self.data.rows[at as usize]
    }

    pub(crate) fn name(&self, at: u32) -> Option<&str> {
        let names = self.data.names.as_ref()?;
        Some(names.value(at as usize))
    }

    pub(crate) fn identifier(&self, at: u32) -> Id {
        match self.name(at) {
            Some(name) => Id::Name(name.to_owned()),
            None => Id::Number(self.id(at)),
        }
    }

    pub(crate) fn columns(&self) -> &RecordBatch {
        &self.data.columns
    }

    /// The live row of a point.
    pub(crate) fn position(&self, id: u64) -> Option<u32> {
        let by_id = self
            .data
            .by_id
            .get_or_init(|| IdLookup::new(&self.data.ids));
        by_id.position(id).filter(|at| self.is_live(*at))
    }

    /// The live row of a name.
    pub(crate) fn position_of_name(&self, name: &str) -> Option<u32> {
        let names = self.data.names.as_ref()?;
        let value = |at: &u32| names.value(*at as usize);
        let by_name = self.data.by_name.get_or_init(|| {
            let mut order: Vec<u32> = (0..names.len() as u32).collect();
            order.sort_unstable_by(|a, b| value(a).cmp(value(b)));
            order
        });
        // A name that was removed and came back has two rows.
        let first = by_name.partition_point(|at| value(at) < name);
        let same = by_name[first..].iter().take_while(|at| value(at) == name);
        same.copied().find(|at| self.is_live(*at))
    }

    /// The same rows with more of them dead.
    pub(crate) fn without(&self, dead: impl IntoIterator<Item = u32>) -> Self {
        let mut all = (*self.dead).clone();
        all.extend(dead);
        Self {
            data: Arc::clone(&self.data),
            dead: Arc::new(all),
        }
    }

    /// The rows as filters see them: the identifiers as the column `id`, then the columns.
    pub(crate) fn visible(&self) -> Result<RecordBatch> {
        let ids: ArrayRef = match &self.data.names {
            Some(names) => Arc::new(names.clone()),
            None => Arc::new(UInt64Array::from(self.data.ids.clone())),
        };
        let columns = &self.data.columns;
        let mut fields = vec![Arc::new(Field::new(ID, ids.data_type().clone(), false))];
        fields.extend(columns.schema().fields().iter().cloned());
        let mut arrays = vec![ids];
        arrays.extend(columns.columns().iter().cloned());
        columns::batch(Arc::new(Schema::new(fields)), arrays, columns.num_rows())
    }
}

/// The type of the column `id`.
pub(crate) fn id_type(named: bool) -> DataType {
    match named {
        true => DataType::LargeUtf8,
        false => DataType::UInt64,
    }
}
