//! Where the nodes of the neighbour graph are stored.

use crate::graph::Pages;

/// Where a point outside the base is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) cell: u32,
    /// Number in the append buffer or in the rewritten part of the cell.
    pub(crate) at: u32,
    pub(crate) appended: bool,
}

/// The places of nodes that are not at their position in the base, and `None` for those that were removed. Clones share
/// them.
#[derive(Clone, Debug)]
pub(crate) struct Places(Pages<Option<Place>, 256>);

impl Default for Places {
    fn default() -> Self {
        Self(Pages::new(1))
    }
}

impl Places {
    /// The place of a node.
    #[inline]
    pub(crate) fn get(&self, node: u32) -> Option<Place> {
        self.0.get(node as usize)?.first().copied().flatten()
    }

    /// Stores the place of a node.
    pub(crate) fn set(&mut self, node: u32, place: Option<Place>) {
        let none = |_: usize, out: &mut Vec<Option<Place>>| out.push(None);
        self.0.row_mut(node as usize, none)[0] = place;
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}
