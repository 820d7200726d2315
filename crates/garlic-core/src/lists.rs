//! Lists of numbers in one array, such as the points of every cell.

/// Lists of cells or points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lists {
    /// Start of each list in `items`, followed by the end of the last.
    pub offsets: Vec<usize>,
    /// All lists, one after the other.
    pub items: Vec<u32>,
}

impl Lists {
    /// Number of lists.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are no lists.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One list.
    #[inline]
    pub fn get(&self, i: usize) -> &[u32] {
        &self.items[self.offsets[i]..self.offsets[i + 1]]
    }

    /// Groups pairs of (list, item). Items keep their order.
    pub fn group(lists: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut offsets = vec![0usize; lists + 1];
        for (list, _) in pairs.clone() {
            offsets[list as usize + 1] += 1;
        }
        for i in 0..lists {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut items = vec![0u32; offsets[lists]];
        for (list, item) in pairs {
            let place = &mut next[list as usize];
            items[*place] = item;
            *place += 1;
        }
        Self { offsets, items }
    }

    /// The points of every label, in order.
    pub fn by_label(lists: usize, labels: &[u32]) -> Self {
        Self::group(lists, by_label(labels))
    }
}

/// Pairs of (label, point) for [`Lists::group`].
pub fn by_label(labels: &[u32]) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
    labels.iter().zip(0..).map(|(label, point)| (*label, point))
}
