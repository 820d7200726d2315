//! The occupied bins of one cell and their members.
//!
//! Plain data in compressed rows: ascending bin numbers, offsets, and members grouped by bin. A bin is spoken of
//! by its *index* among the occupied ones; the bin *number* is its place in the [`Grid`].

use super::Grid;
use super::sphere::{SphereError, check_rows};
use crate::config::BinBudget;

/// What can be wrong with the parts that bins are made from.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BinsError {
    /// The coordinates themselves are unusable.
    #[error(transparent)]
    Coordinates(#[from] SphereError),
    /// The coordinates do not fit the members and the grid.
    #[error("{members} members in {r} coordinates need {members} x {r} values, got {len}")]
    Shape {
        /// Number of members.
        members: usize,
        /// Number of coordinates of the grid.
        r: usize,
        /// Number of values given.
        len: usize,
    },
    /// More members than 32-bit offsets can address.
    #[error("a cell of {0} members is too large: split it below 2^32 members")]
    TooManyMembers(usize),
    /// The bin numbers are not strictly ascending.
    #[error(
        "occupied bins are not strictly ascending at index {0}: the bins are damaged, build them again"
    )]
    BinOrder(usize),
    /// A bin number is not on the grid.
    #[error("bin {bin} is outside a grid of {bins} bins: the bins belong to another grid")]
    BinRange {
        /// The bin number.
        bin: u32,
        /// Number of bins of the grid.
        bins: usize,
    },
    /// The offsets do not divide the members into non-empty bins.
    #[error("bin offsets are wrong ({0}): the bins are damaged, build them again")]
    Offsets(&'static str),
    /// The members of a bin are not strictly ascending.
    #[error(
        "members of the bin at index {0} are not strictly ascending: every member is listed once, in order"
    )]
    MemberOrder(usize),
}

/// The parts of [`Bins`], as a store writes them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BinsParts<'a> {
    /// The grid the bin numbers refer to.
    pub grid: &'a Grid,
    /// Occupied bin numbers, strictly ascending.
    pub occupied: &'a [u32],
    /// Where each bin's members start, and the number of members at the end.
    pub offsets: &'a [u32],
    /// Members grouped by bin, strictly ascending inside a bin.
    pub members: &'a [u32],
}

/// The occupied bins of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Bins {
    grid: Grid,
    occupied: Vec<u32>,
    offsets: Vec<u32>,
    members: Vec<u32>,
    ordering_work: u64,
}

/// Reusable memory for [`Bins::nearest`].
#[derive(Debug, Clone, Default)]
pub struct BinScratch {
    distances: Vec<f32>,
    keys: Vec<u64>,
    order: Vec<u32>,
}

impl BinScratch {
    /// The distance of every occupied bin, by index, to the last query.
    pub fn distances(&self) -> &[f32] {
        &self.distances
    }
}

impl Bins {
    /// Sorts `members` into the bins of `grid`; row `i` of `coordinates` belongs to `members[i]`.
    ///
    /// # Errors
    /// When there are not `members.len()` rows of the grid's dimension, a value is not finite, or a bin would
    /// list a member twice.
    pub fn build(grid: Grid, coordinates: &[f32], members: &[u32]) -> Result<Self, BinsError> {
        let r = grid.dim();
        if members.len().checked_mul(r) != Some(coordinates.len()) {
            return Err(BinsError::Shape {
                members: members.len(),
                r,
                len: coordinates.len(),
            });
        }
        if u32::try_from(members.len()).is_err() {
            return Err(BinsError::TooManyMembers(members.len()));
        }
        check_rows(coordinates, r)?;

        let row = |i: usize| &coordinates[i * r..(i + 1) * r];
        let key = |(i, &member): (usize, &u32)| (grid.bin_of(row(i)), member);
        let mut keys: Vec<(u32, u32)> = members.iter().enumerate().map(key).collect();
        keys.sort_unstable();

        let mut occupied: Vec<u32> = Vec::new();
        let mut offsets = Vec::new();
        for (i, &(bin, _)) in keys.iter().enumerate() {
            if occupied.last() != Some(&bin) {
                occupied.push(bin);
                offsets.push(i as u32);
            }
        }
        offsets.push(keys.len() as u32);
        let members = keys.into_iter().map(|(_, member)| member).collect();
        Self::from_parts(grid, occupied, offsets, members)
    }

    /// Bins from stored parts, the inverse of [`Bins::parts`].
    ///
    /// # Errors
    /// When lengths, order or ranges are not those that [`BinsParts`] promises.
    pub fn from_parts(
        grid: Grid,
        occupied: Vec<u32>,
        offsets: Vec<u32>,
        members: Vec<u32>,
    ) -> Result<Self, BinsError> {
        if let Some(i) = occupied.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(BinsError::BinOrder(i + 1));
        }
        if let Some(&bin) = occupied.last().filter(|&&bin| bin as usize >= grid.bins()) {
            return Err(BinsError::BinRange {
                bin,
                bins: grid.bins(),
            });
        }
        if offsets.len() != occupied.len() + 1 {
            return Err(BinsError::Offsets(
                "their number is not that of the bins plus one",
            ));
        }
        if offsets[0] != 0 {
            return Err(BinsError::Offsets("the first is not zero"));
        }
        if offsets[occupied.len()] as usize != members.len() {
            return Err(BinsError::Offsets("the last is not the number of members"));
        }
        if offsets.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(BinsError::Offsets("a bin is empty or reversed"));
        }
        let ordering_work = grid.ordering_work(&occupied);
        let bins = Self {
            grid,
            occupied,
            offsets,
            members,
            ordering_work,
        };
        let ascending = |i: &usize| bins.members_of(*i).is_sorted_by(|a, b| a < b);
        match (0..bins.occupied.len()).find(|i| !ascending(i)) {
            Some(i) => Err(BinsError::MemberOrder(i)),
            None => Ok(bins),
        }
    }

    /// The plain data of the bins.
    pub fn parts(&self) -> BinsParts<'_> {
        BinsParts {
            grid: &self.grid,
            occupied: &self.occupied,
            offsets: &self.offsets,
            members: &self.members,
        }
    }

    /// The grid the bin numbers refer to.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Occupied bin numbers, ascending; none for a cell without members.
    pub fn occupied(&self) -> &[u32] {
        &self.occupied
    }

    /// Members of the occupied bin at `index`, ascending; none past the last bin.
    pub fn members_of(&self, index: usize) -> &[u32] {
        match self.offsets.get(index..) {
            Some(&[from, to, ..]) => &self.members[from as usize..to as usize],
            _ => &[],
        }
    }

    /// All members, grouped by bin.
    pub fn members(&self) -> &[u32] {
        &self.members
    }

    /// Multiply-adds that ordering the bins for one query costs, see [`Grid::ordering_work`].
    pub fn ordering_work(&self) -> u64 {
        self.ordering_work
    }

    /// Number of occupied bins that a budget `rho` in (0, 1] pays for: the share of the bins that `of` names, rounded
    /// up, at least one. Other values act as the nearer end, NaN as the lower one; without bins it is zero.
    pub fn budget(&self, rho: f32, of: BinBudget) -> usize {
        let occupied = self.occupied.len();
        if rho >= 1.0 {
            return occupied;
        }
        let bins = match of {
            BinBudget::All => self.grid.bins(),
            BinBudget::Occupied => occupied,
        };
        // 0.3 is a little more than 0.3 in f32, and 0.3 of 10 bins is 3: take off what rounding may have added.
        let share = f64::from(rho) * bins as f64 * (1.0 - f64::from(f32::EPSILON));
        (share.ceil() as usize).max(1).min(occupied)
    }

    /// Indices of the `count` occupied bins nearest to `q`, by (distance, bin number); all when there are fewer.
    ///
    /// `q` lies in the cell's frame and has the grid's dimension, see [`Grid::distances`].
    pub fn nearest<'a>(&self, q: &[f32], count: usize, scratch: &'a mut BinScratch) -> &'a [u32] {
        let BinScratch {
            distances,
            keys,
            order,
        } = scratch;
        self.grid.distances(q, &self.occupied, distances);
        keys.clear();
        // Distances are not negative, so their bits order as they do; the index below them breaks ties.
        let key = |(i, d): (usize, &f32)| u64::from(d.to_bits()) << 32 | i as u64;
        keys.extend(distances.iter().enumerate().map(key));

        let count = count.min(keys.len());
        if count < keys.len() {
            keys.select_nth_unstable(count);
        }
        let chosen = &mut keys[..count];
        chosen.sort_unstable();
        order.clear();
        order.extend(chosen.iter().map(|&key| key as u32));
        order
    }
}
