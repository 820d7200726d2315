//! Data that an index may meet and that most benchmarks leave out: heavy tails, outliers, ties, duplicates,
//! offsets, extreme scales and manifolds.
//!
//! Each [`Kind`] is a seeded generator. Base vectors and queries are drawn in one call and split afterwards, so
//! that both follow the same distribution; a kind that treats its first rows differently says so.

mod clusters;
mod counts;
mod gaussians;
mod manifolds;
mod stream;
mod tails;
mod ties;

#[cfg(test)]
mod tests;

/// A seeded generator of rows.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name in tables and on the command line.
    pub name: &'static str,
    /// What the rows are, in one line.
    pub about: &'static str,
    /// Dimension of the rows.
    pub dim: usize,
    /// Draws rows for a seed: the values, row-major, and their dimension.
    pub draw: fn(usize, u64) -> (Vec<f32>, usize),
}

/// Kinds of one name are the same.
impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Base vectors and queries of one distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Dimension of both.
    pub dim: usize,
    /// Base vectors, row-major.
    pub base: Vec<f32>,
    /// Queries, row-major: the last rows of the draw.
    pub queries: Vec<f32>,
}

impl Kind {
    /// Draws `points` base vectors and `queries` queries.
    pub fn sample(&self, points: usize, queries: usize, seed: u64) -> Sample {
        let (mut base, dim) = (self.draw)(points + queries, seed);
        let queries = base.split_off(points * dim);
        Sample { dim, base, queries }
    }
}

/// Every kind, grouped by the file that draws it.
pub fn kinds() -> &'static [Kind] {
    &KINDS
}

/// The kind of this name.
pub fn kind(name: &str) -> Option<&'static Kind> {
    kinds().iter().find(|kind| kind.name == name)
}

const KINDS: [Kind; 50] = flatten([
    gaussians::KINDS.as_slice(),
    tails::KINDS.as_slice(),
    clusters::KINDS.as_slice(),
    counts::KINDS.as_slice(),
    ties::KINDS.as_slice(),
    manifolds::KINDS.as_slice(),
]);

/// The groups one after the other; a count that is not theirs does not compile.
const fn flatten<const N: usize, const GROUPS: usize>(groups: [&[Kind]; GROUPS]) -> [Kind; N] {
    let mut all = [groups[0][0]; N];
    let (mut group, mut filled) = (0, 0);
    while group < GROUPS {
        let mut at = 0;
        while at < groups[group].len() {
            all[filled] = groups[group][at];
            (at, filled) = (at + 1, filled + 1);
        }
        group += 1;
    }
    assert!(filled == N, "KINDS has another length than its groups");
    all
}
