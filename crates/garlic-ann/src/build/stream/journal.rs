//! What is finished of a streamed build, so that it can go on after it was stopped.

use std::fs;
use std::io::Write as _;

use garlic_core::file::atomic::{self, Disk};
use garlic_core::{Error, Result, Transform};
use garlic_linalg::Matrix;
use serde::{Deserialize, Serialize};

use super::encoded::GroupLengths;
use super::folder::{Cursor, Folder, failed};
use super::groups::{Groups, Record};
use super::rows::Summary;
use crate::config::Config;
use crate::partition::AnisotropicCells;

const NAME: &str = "journal.json";
const TRANSFORM: &str = "transform";
const CELLS: &str = "cells";
/// Version of the files in the folder.
const VERSION: u32 = 2;

/// The finished parts. It is replaced after each part, when the files of the part have been synced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Journal {
    version: u32,
    /// Of the input and the options. A build with others cannot go on.
    fingerprint: String,
    pub(super) rows: Option<Summary>,
    pub(super) grouped: Option<Grouped>,
    /// Whether the cells were fitted to their points.
    pub(super) fitted: bool,
    pub(super) encoded: Vec<GroupLengths>,
}

/// What is known when every point is in the file of its group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Grouped {
    pub(super) groups: Groups,
    /// Points of the largest cell and of the largest group, which decide how much memory the groups need.
    pub(super) largest_cell: usize,
    pub(super) largest_group: usize,
    pub(super) record: Record,
    pub(super) cells: usize,
    pub(super) rank: usize,
    pub(super) scored_axes: usize,
    /// Length of the longest stored vector, for inner products.
    pub(super) longest: f32,
}

impl Journal {
    /// The journal of a new build, or that of one that was stopped.
    pub(super) fn open(folder: &Folder, fingerprint: String, resume: bool) -> Result<Self> {
        let path = folder.file(NAME);
        let new = Self {
            version: VERSION,
            fingerprint,
            rows: None,
            grouped: None,
            fitted: false,
            encoded: Vec::new(),
        };
        if !path.exists() {
            return Ok(new);
        }
        let place = folder.path().display();
        let refused = |message: String| Error::Config {
            key: "resume".into(),
            message,
        };
        if !resume {
            return Err(refused(format!(
                "{place} has the parts of a build that was stopped; resume it, or remove this folder"
            )));
        }
        let text = fs::read(&path).map_err(failed(&path))?;
        let found: Self = serde_json::from_slice(&text)
            .map_err(|error| refused(format!("{place} is damaged, remove it: {error}")))?;
        if found.version != VERSION {
            return Err(refused(format!(
                "{place} is of another version of the program; remove it"
            )));
        }
        if found.fingerprint != new.fingerprint {
            return Err(refused(format!(
                "{place} belongs to another build: {}; give the same input and options, or remove this folder",
                difference(&found.fingerprint, &new.fingerprint)
            )));
        }
        Ok(found)
    }

    /// Makes the finished parts last.
    pub(super) fn save(&self, folder: &Folder) -> Result<()> {
        let path = folder.file(NAME);
        let save = || {
            let text = serde_json::to_vec(self)?;
            atomic::replace(&Disk, &path, |out| out.write_all(&text))
        };
        save().map_err(failed(&path))
    }
}

/// The first lines in which two fingerprints differ.
fn difference(found: &str, new: &str) -> String {
    let lines = found.lines().zip(new.lines());
    match lines.into_iter().find(|(found, new)| found != new) {
        Some((found, new)) => format!("it has `{found}`, this one `{new}`"),
        None => "one of them has more inputs".into(),
    }
}

/// Writes the transform of a part.
pub(super) fn save_transform(folder: &Folder, transform: &Transform) -> Result<()> {
    let mut out = folder.create(TRANSFORM, 1 << 16)?;
    out.put(&transform.mean)?;
    if let Some(rotation) = &transform.rotation {
        out.put(rotation.as_slice())?;
    }
    out.finish()
}

/// Reads it again.
pub(super) fn load_transform(folder: &Folder, record: &Record) -> Result<Transform> {
    let mut from = Cursor::open(folder, TRANSFORM)?;
    Ok(Transform {
        mean: from.next(record.dim)?,
        scale: vec![1.0; record.dim],
        rotation: Some(Matrix::from_vec(
            from.next(record.dim * record.out_dim)?,
            record.dim,
        )?),
    })
}

/// Writes the fitted cells.
pub(super) fn save_cells(folder: &Folder, cells: &AnisotropicCells) -> Result<()> {
    let mut out = folder.create(CELLS, 1 << 16)?;
    out.put(&cells.means)?;
    out.put(&cells.axes)?;
    out.put(&cells.variances)?;
    out.put(&cells.residual_variances)?;
    out.finish()
}

/// Reads them again.
pub(super) fn load_cells(
    folder: &Folder,
    grouped: &Grouped,
    config: &Config,
) -> Result<AnisotropicCells> {
    let (cells, rank, dim) = (grouped.cells, grouped.rank, grouped.record.out_dim);
    let mut from = Cursor::open(folder, CELLS)?;
    Ok(AnisotropicCells {
        anisotropy: config.partition.anisotropy as f32,
        dim,
        rank,
        means: from.next(cells * dim)?.into(),
        axes: from.next(cells * rank * dim)?.into(),
        variances: from.next(cells * rank)?.into(),
        residual_variances: from.next(cells)?.into(),
    })
}
