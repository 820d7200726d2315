//! A scripted workload and the states it passes through.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use garlic_linalg::Rows;

use super::super::{AttachmentChange, Kind, Live, Options};
use super::sim::SimDisk;
use crate::segment::Index;
use garlic_core::{Attachment, Error, Result};

/// Dimension of the vectors. It is odd, so that records need padding.
pub(super) const DIM: usize = 3;
/// Upper limit of the identifiers.
pub(super) const IDS: u64 = 64;
/// Points from this one on need no rows. A point below it that has none is of version 0.
const ROWLESS: u64 = 50;
/// Number of points of the initial index.
const FIRST: u64 = 12;

/// Every point with its vector.
pub(super) type State = BTreeMap<u64, Vec<f32>>;

/// One call of the handle.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Add(Vec<u64>),
    Remove(Vec<u64>),
    Update(Vec<u64>),
    Upsert(Vec<u64>),
    Checkpoint,
    Compact,
}

/// A vector that no other point or version has.
pub(super) fn vector(id: u64, version: usize) -> Vec<f32> {
    let at = |factor: u64| ((id * factor + 7) % 67) as f32;
    vec![at(3) + version as f32 / 64.0, at(11), at(17)]
}

fn vectors(ids: &[u64], version: usize) -> Vec<f32> {
    ids.iter().flat_map(|id| vector(*id, version)).collect()
}

/// The rows of points in a version, as a block of the attachment: pairs of identifier and version.
fn rows(ids: &[u64], version: usize) -> Vec<u8> {
    let words = ids.iter().flat_map(|id| [*id, version as u64]);
    words.flat_map(u64::to_le_bytes).collect()
}

/// The version of every row, the latest of each point.
fn versions(index: &Index) -> BTreeMap<u64, usize> {
    let bytes = index.attachment().blocks().unwrap().concat();
    let words = bytes.as_chunks::<8>().0.iter().copied();
    let words: Vec<u64> = words.map(u64::from_le_bytes).collect();
    let pairs = words.as_chunks::<2>().0.iter();
    pairs
        .map(|[id, version]| (*id, *version as usize))
        .collect()
}

/// The index that every script begins with.
pub(super) fn first() -> Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    let build = || {
        let ids: Vec<u64> = (0..FIRST).collect();
        let data = vectors(&ids, 0);
        let vectors = Rows::new(&data, DIM).unwrap();
        let builder = Index::builder().threads(1).seed(3);
        let mut index = builder.set("store", "f32").unwrap().build(vectors).unwrap();
        index.set_attachment(Attachment::from_blocks(vec![rows(&ids, 0).into()]));
        index
    };
    INDEX.get_or_init(build).clone()
}

/// Content of an index. Every vector has the row of its version beside it.
pub(super) fn state(index: &Index) -> State {
    let state: State = (0..IDS)
        .filter_map(|id| Some((id, index.get(id)?)))
        .collect();
    assert_eq!(state.len(), index.len());
    assert!(state.keys().all(|id| index.contains(*id)));
    let versions = versions(index);
    for (id, found) in state.iter().filter(|(id, _)| **id < ROWLESS) {
        let version = versions.get(id).copied().unwrap_or(0);
        assert_eq!(*found, vector(*id, version), "point {id} and its row");
    }
    state
}

/// Steps and the states between them: `states[i]` is the state after `i` steps.
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
    pub(super) states: Vec<State>,
}

impl Script {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        let mut states = vec![state(&first())];
        for (number, step) in steps.iter().enumerate() {
            let mut next = states[number].clone();
            match step {
                Step::Add(ids) | Step::Update(ids) | Step::Upsert(ids) => {
                    for id in ids {
                        next.insert(*id, vector(*id, number + 1));
                    }
                }
                Step::Remove(ids) => next.retain(|id, _| !ids.contains(id)),
                Step::Checkpoint | Step::Compact => {}
            }
            states.push(next);
        }
        Self { steps, states }
    }

    /// Every kind of step, before and after checkpoints.
    pub(super) fn standard() -> Self {
        Self::new(vec![
            Step::Add(vec![20, 21, 22]),
            Step::Remove(vec![1, 21, 63]),
            Step::Checkpoint,
            Step::Update(vec![2, 20]),
            Step::Add(vec![30]),
            Step::Compact,
            Step::Remove(vec![30, 3, 4]),
            Step::Add(vec![31, 32, 33, 34, 35]),
            Step::Remove(vec![31]),
            Step::Upsert(vec![36, 2]),
        ])
    }

    /// Runs step `number`.
    pub(super) fn run(&self, live: &Live, number: usize) -> Result<()> {
        match &self.steps[number] {
            Step::Add(ids) => self.put(live, Kind::Add, ids, number + 1),
            Step::Remove(ids) => live.remove(ids).map(|_| ()),
            Step::Update(ids) => self.put(live, Kind::Update, ids, number + 1),
            Step::Upsert(ids) => self.put(live, Kind::Upsert, ids, number + 1),
            Step::Checkpoint => live.checkpoint(),
            Step::Compact => live.compact(),
        }
    }

    /// Points of a version, with their rows in the same batch.
    fn put(&self, live: &Live, kind: Kind, ids: &[u64], version: usize) -> Result<()> {
        let (data, block) = (vectors(ids, version), rows(ids, version));
        let mut after = live.snapshot().attachment().clone();
        after.push(block.clone().into()).unwrap();
        let change = AttachmentChange {
            block: Some(&block),
            after,
        };
        let changed = live.apply(kind, Rows::new(&data, DIM)?, ids, Some(change));
        changed.map(|_| ())
    }
}

/// Where the directory is on a simulated disk.
pub(super) fn directory() -> PathBuf {
    Path::new("/simulated").join("live")
}

/// Small enough that most batches trigger a checkpoint, and large enough that a small removal does not.
pub(super) fn small_log() -> Options {
    Options::new().log_limit(150)
}

pub(super) fn create(disk: &SimDisk, options: &Options) -> Result<Live> {
    Live::create_on(Arc::new(disk.clone()), &directory(), first(), options)
}

pub(super) fn open(disk: &SimDisk, options: &Options) -> Result<Live> {
    Live::open_on(Arc::new(disk.clone()), &directory(), options)
}

/// What a reader finds. `None` if there is no index directory.
pub(super) fn look(disk: &SimDisk) -> Option<State> {
    match Live::open_read_only_on(disk, &directory()) {
        Ok(live) => Some(state(&live.snapshot())),
        Err(Error::Directory { message, .. }) => {
            assert!(message.contains("no index directory"), "{message}");
            None
        }
        Err(other) => panic!("{other}"),
    }
}
