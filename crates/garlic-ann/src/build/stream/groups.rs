//! Points by group of cells, each group in a file of its own.
//!
//! A record has the cell and the row of a point, its squared distance from the truncated space, its coordinates there,
//! and its vector as it is stored. Held-out points have a file of their own: their cells are not known yet.

use garlic_core::file::put_vectors;
use garlic_core::vectors::{StoredType, StoredVectors};
use garlic_core::{Result, Rows};
use garlic_linalg::Matrix;
use serde::{Deserialize, Serialize};

use super::folder::{Folder, Output, failed};
use crate::partition::NO_CELL;

const HELD: &str = "held";
/// Bytes that are gathered for a group before they are written.
const BUFFER_BYTES: usize = 1 << 18;

/// The layout of a record.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Coordinates of a vector, and of a transformed one.
    pub(super) dim: usize,
    pub(super) out_dim: usize,
    pub(super) element: StoredType,
}

/// Bytes before the coordinates.
const HEAD_BYTES: usize = 12;

impl Record {
    /// Bytes of a record.
    pub(super) fn bytes(&self) -> usize {
        HEAD_BYTES + 4 * self.out_dim + self.stored_bytes()
    }

    pub(super) fn stored_bytes(&self) -> usize {
        self.element.row_bytes(self.dim)
    }
}

/// Which cells are in which group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Groups {
    /// First cell of each group, followed by the number of cells.
    pub(super) starts: Vec<u32>,
}

impl Groups {
    /// Groups of consecutive cells with at most `most` points each, but at least one cell.
    pub(super) fn new(sizes: &[u32], most: usize) -> Self {
        let mut starts = vec![0];
        let mut inside = 0;
        for (cell, size) in (0..).zip(sizes) {
            if inside > 0 && inside + *size as usize > most {
                starts.push(cell);
                inside = 0;
            }
            inside += *size as usize;
        }
        starts.push(sizes.len() as u32);
        Self { starts }
    }

    /// Points of the largest group, given those of each cell.
    pub(super) fn largest(&self, sizes: &[u32]) -> usize {
        let points = |group| sizes[self.cells(group)].iter().map(|n| *n as usize).sum();
        (0..self.len()).map(points).max().unwrap_or(0)
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn cells(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group] as usize..self.starts[group + 1] as usize
    }
}

fn name(group: usize) -> String {
    format!("group-{group}")
}

/// Writes records to the files of their groups.
pub(super) struct GroupWriter {
    record: Record,
    outputs: Vec<Output>,
    held: Output,
    group_of: Vec<u32>,
}

impl GroupWriter {
    pub(super) fn new(folder: &Folder, groups: &Groups, record: Record) -> Result<Self> {
        let outputs: Result<Vec<Output>> = (0..groups.len())
            .map(|group| folder.create(&name(group), BUFFER_BYTES))
            .collect();
        let group_of = (0..groups.len()).flat_map(|g| groups.cells(g).map(move |_| g as u32));
        Ok(Self {
            record,
            outputs: outputs?,
            held: folder.create(HELD, BUFFER_BYTES)?,
            group_of: group_of.collect(),
        })
    }

    /// Appends points. `first` is the row of the first, `cells` their cells, and `points` their transformed vectors.
    pub(super) fn push(
        &mut self,
        folder: &Folder,
        first: usize,
        cells: &[u32],
        vectors: Rows<'_>,
        points: &[f32],
        residuals: &[f32],
    ) -> Result<()> {
        let all: Vec<u32> = (0..vectors.len() as u32).collect();
        let stored = StoredVectors::gather(vectors, &all, self.record.element);
        let mut bytes = Vec::with_capacity(vectors.len() * self.record.stored_bytes());
        put_vectors(&stored, &mut bytes).map_err(failed(folder.path()))?;
        let rows = points.chunks_exact(self.record.out_dim);
        let rows = rows.zip(bytes.chunks_exact(self.record.stored_bytes()));
        for (i, (point, stored)) in rows.enumerate() {
            let out = match cells[i] {
                NO_CELL => &mut self.held,
                cell => &mut self.outputs[self.group_of[cell as usize] as usize],
            };
            out.put(&[cells[i], (first + i) as u32, residuals[i].to_bits()])?;
            out.put(point)?;
            out.put(stored)?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<()> {
        self.outputs.into_iter().try_for_each(Output::finish)?;
        self.held.finish()
    }
}

/// Some records in memory.
pub(super) struct Records {
    record: Record,
    bytes: Vec<u8>,
}

impl Records {
    /// The records of a group.
    pub(super) fn of_group(folder: &Folder, group: usize, record: Record) -> Result<Self> {
        let bytes = folder.open(&name(group))?.whole()?;
        Ok(Self { record, bytes })
    }

    /// The records of held-out points.
    pub(super) fn held(folder: &Folder, record: Record) -> Result<Self> {
        let bytes = folder.open(HELD)?.whole()?;
        Ok(Self { record, bytes })
    }

    pub(super) fn discard(folder: &Folder, group: usize) {
        folder.discard(&name(group));
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() / self.record.bytes()
    }

    fn get(&self, at: usize) -> &[u8] {
        &self.bytes[at * self.record.bytes()..][..self.record.bytes()]
    }

    fn word(&self, at: usize, number: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.get(at)[4 * number..][..4]);
        u32::from_ne_bytes(word)
    }

    pub(super) fn cell(&self, at: usize) -> u32 {
        self.word(at, 0)
    }

    pub(super) fn row(&self, at: usize) -> u32 {
        self.word(at, 1)
    }

    pub(super) fn residual_squared(&self, at: usize) -> f32 {
        f32::from_bits(self.word(at, 2))
    }

    /// Appends the coordinates of a point.
    fn append_point(&self, at: usize, out: &mut Vec<f32>) {
        let bytes = &self.get(at)[HEAD_BYTES..][..4 * self.record.out_dim];
        let values = bytes.as_chunks::<4>().0.iter();
        out.extend(values.map(|b| f32::from_ne_bytes(*b)));
    }

    /// The stored vector of a point.
    pub(super) fn stored(&self, at: usize) -> &[u8] {
        &self.get(at)[HEAD_BYTES + 4 * self.record.out_dim..]
    }
}

/// The points at some places of some records.
pub(super) fn gather<'a>(
    places: impl ExactSizeIterator<Item = (&'a Records, usize)>,
    dim: usize,
) -> Result<Matrix> {
    let mut values = Vec::with_capacity(places.len() * dim);
    for (records, at) in places {
        records.append_point(at, &mut values);
    }
    Ok(Matrix::from_vec(values, dim)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_whole_cells_and_bounded_sizes() {
        let groups = Groups::new(&[5, 5, 20, 1, 2, 3], 10);
        assert_eq!(groups.starts, [0, 2, 3, 6]);
        assert_eq!((groups.len(), groups.cells(1)), (3, 2..3));
        assert_eq!(groups.largest(&[5, 5, 20, 1, 2, 3]), 20);
        assert_eq!(Groups::new(&[4], 10).starts, [0, 1]);
    }
}
