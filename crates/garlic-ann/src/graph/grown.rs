//! A graph that points were added to.
//!
//! The base is immutable and may be mapped from a file. Lists that changed, and lists and codes of added points, lie in
//! pages that snapshots share. A point of a graph is called a *node* here: nodes of the base have the numbers of its
//! positions, added nodes follow in the order in which they came. Nodes keep their numbers when points move from one
//! cell to another, and removed points stay as nodes that lead to others.

use std::sync::{Arc, Mutex, PoisonError};

use garlic_core::{Cancel, Result};
use garlic_linalg::Rows;

use super::bytes::ByteTable;
use super::links::Links;
use super::{Graph, Line, NO_NEIGHBOUR, Pages, add, repair};

/// One of this many added nodes is an entry.
const NODES_PER_ENTRY: usize = 2048;

/// A graph with added points. Clones share everything until one of them changes.
#[derive(Clone, Debug)]
pub(crate) struct Grown {
    pub(super) base: Arc<Graph>,
    points: usize,
    /// Lists that changed or were added, by node.
    lists: Pages<u32, 16>,
    /// Codes of added nodes.
    codes: Pages<Line, 64>,
    /// Nodes that searches start from, besides the centres of the cells of the base.
    entries: Arc<Vec<u32>>,
    /// Nodes that are in no list because they were removed.
    detached: usize,
    /// Identifies this state.
    stamp: Arc<()>,
    /// What the last change worked on. It takes time to make, and clones that do not change do not need it.
    workbench: Arc<Mutex<Option<Workbench>>>,
}

/// The arrays that a change of a graph works on.
pub(super) struct Workbench {
    /// The state of the graph that these arrays have.
    stamp: Arc<()>,
    pub(super) table: ByteTable,
    pub(super) links: Links,
}

impl std::fmt::Debug for Workbench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Workbench of {} points", self.table.len())
    }
}

impl Grown {
    /// A graph without added points.
    pub(crate) fn new(base: &Arc<Graph>) -> Self {
        Self {
            base: Arc::clone(base),
            points: base.points(),
            lists: Pages::new(base.degree),
            codes: Pages::new(base.codes.lines()),
            entries: Arc::default(),
            detached: 0,
            stamp: Arc::default(),
            workbench: Arc::default(),
        }
    }

    /// Number of nodes.
    #[inline]
    pub(crate) fn points(&self) -> usize {
        self.points
    }

    /// The list of a node.
    #[inline]
    pub(crate) fn neighbours_of(&self, at: u32) -> &[u32] {
        match self.lists.get(at as usize) {
            Some(list) => list,
            None => self.base.neighbours_of(at),
        }
    }

    /// Nodes that searches start from.
    pub(crate) fn starts(&self) -> impl Iterator<Item = u32> {
        let centres = self.base.centres.iter();
        centres.chain(&*self.entries).copied()
    }

    /// Nodes that searches start from, besides those of the base.
    #[inline]
    pub(super) fn entries(&self) -> &[u32] {
        &self.entries
    }

    /// Head and rest of the code of a node. Empty if there is no such node.
    #[inline]
    pub(super) fn code(&self, at: u32) -> [&[Line]; 2] {
        let (codes, at) = (&self.base.codes, at as usize);
        let [head, rest] = codes.quantizer.lines();
        match codes.heads.get(at * head..(at + 1) * head) {
            Some(part) => [
                part,
                codes
                    .rests
                    .get(at * rest..(at + 1) * rest)
                    .unwrap_or_default(),
            ],
            None => {
                let added = at.checked_sub(self.base.points());
                let code = added.and_then(|row| self.codes.get(row));
                code.map_or([&[], &[]], |code| {
                    let (head, rest) = code.split_at(head);
                    [head, rest]
                })
            }
        }
    }

    /// Bytes of all pages and of the workbench.
    pub(crate) fn bytes(&self) -> u64 {
        let bench = self
            .workbench
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let bench = bench
            .as_ref()
            .map_or(0, |b| b.table.bytes() + b.links.bytes());
        self.lists.bytes() + self.codes.bytes() + bench as u64
    }

    /// Adds nodes for these vectors. Runs in the current rayon pool.
    pub(crate) fn add(&mut self, vectors: Rows<'_>) -> Result<()> {
        let codes = &self.base.codes;
        let lines = codes.encode_rows(vectors);
        let mut bench = self.take_workbench();
        bench.table.extend(&codes.bytes_of(&lines));
        let first = self.points - self.base.points();
        for (row, code) in (first..).zip(lines.chunks_exact(codes.lines())) {
            let empty =
                |_: usize, out: &mut Vec<Line>| out.resize(out.len() + code.len(), Line([0; 64]));
            self.codes.row_mut(row, empty).copy_from_slice(code);
        }
        let new = first..first + vectors.len();
        let entries = new.filter(|at| at % NODES_PER_ENTRY == 0);
        let entries = entries.map(|at| (self.base.points() + at) as u32);
        Arc::make_mut(&mut self.entries).extend(entries);
        self.points += vectors.len();
        let known = bench.links.neighbours.len() / bench.links.degree;
        let exists = |at: &u32| (*at as usize) < known;
        let starts: Vec<u32> = self.starts().filter(exists).collect();
        add::add(&bench.table, &mut bench.links, &starts)?;
        let unreached = repair::unreached_since(&bench.links, known as u32);
        Arc::make_mut(&mut self.entries).extend(unreached);
        self.publish(bench);
        Ok(())
    }

    /// Number of removed nodes that lists still lead to, of an index with `live` points.
    pub(crate) fn removed(&self, live: usize) -> usize {
        (self.points - live).saturating_sub(self.detached)
    }

    /// Takes the nodes that are `gone` out of the lists of the others. They still lead to these. Nodes that no list leads
    /// to any more become entries.
    pub(crate) fn detach(&mut self, gone: &[bool]) -> Result<()> {
        let mut bench = self.take_workbench();
        let Workbench { table, links, .. } = &mut bench;
        let lists = repair::detach(table, links, gone, &Cancel::default())?;
        self.detached = lists.len();
        lists.iter().for_each(|(at, list)| links.set(*at, list));
        let unreached = repair::unreached(links, self.starts(), gone);
        Arc::make_mut(&mut self.entries).extend(unreached);
        self.publish(bench);
        Ok(())
    }

    /// The arrays of this state.
    pub(super) fn take_workbench(&self) -> Workbench {
        // Not under the lock, because a waiting thread may take up other work that changes a clone of this graph.
        let last = self
            .workbench
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match last {
            Some(bench) if Arc::ptr_eq(&bench.stamp, &self.stamp) => bench,
            _ => self.new_workbench(),
        }
    }

    fn new_workbench(&self) -> Workbench {
        let codes = &self.base.codes;
        let width = ByteTable::width(codes.quantizer.dim());
        let parts = (0..self.points as u32).flat_map(|at| self.code(at));
        let all: Vec<Line> = parts.flatten().copied().collect();
        let table = ByteTable::new(width, codes.bytes_of(&all));
        let degree = self.base.degree;
        let mut neighbours = Vec::with_capacity(self.points * degree);
        for at in 0..self.points as u32 {
            // A file that was not verified may have any content.
            let exists = |n: &&u32| (**n as usize) < self.points;
            neighbours.extend(self.neighbours_of(at).iter().take_while(exists));
            neighbours.resize((at as usize + 1) * degree, NO_NEIGHBOUR);
        }
        Workbench {
            stamp: Arc::clone(&self.stamp),
            table,
            links: Links::new(degree, neighbours),
        }
    }

    /// Copies the changed lists into the pages of this graph, which becomes a new state.
    fn publish(&mut self, mut bench: Workbench) {
        let mut changed = std::mem::take(&mut bench.links.changed);
        changed.sort_unstable();
        changed.dedup();
        let (base, degree) = (&self.base, self.base.degree);
        let initial = |at: usize, out: &mut Vec<u32>| {
            let end = out.len() + degree;
            out.extend_from_slice(base.neighbours_of(at as u32));
            out.resize(end, NO_NEIGHBOUR);
        };
        for at in changed {
            let from = at as usize * degree;
            let list = &bench.links.neighbours[from..from + degree];
            self.lists
                .row_mut(at as usize, initial)
                .copy_from_slice(list);
        }
        self.stamp = Arc::default();
        bench.stamp = Arc::clone(&self.stamp);
        self.keep_workbench(bench);
    }

    /// Keeps the arrays for the next change.
    pub(super) fn keep_workbench(&self, bench: Workbench) {
        let mut place = self
            .workbench
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = Some(bench);
    }
}
