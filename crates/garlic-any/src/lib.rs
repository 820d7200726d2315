//! The one door to an index of either kind: [`garlic_ann::Index`] (preset `default`) and
//! [`garlic_paper::GaussianIndex`] (preset `paper`, the published method).
//!
//! The program and the Python package open, build and describe indexes through this crate. Everything behind the door
//! works with [`NeighborIndex`] and does not know that there are two kinds. Either kind takes changes ([`AnyIndex::add`]);
//! what only one of them can do begins with [`AnyIndex::updatable`].
//!
//! The rule of this crate: it tells the kinds apart and does nothing else.

mod build;
mod config;
pub mod describe;
pub mod words;

pub use build::AnyBuilder;
pub use config::{AnyConfig, Feature, Preset};
pub use garlic_core::config::Parameter;

/// The Rust example of the project's README runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

use std::ops::Deref;
use std::path::Path;

use garlic_ann::{Attachment, Error, FormatError, Index, NeighborIndex, Result, Rows, Search};
use garlic_core::file::{self, Kind, Summary};
use garlic_paper::GaussianIndex;

/// An index of either kind. A copy is cheap.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "every search of a program takes a copy: one without an allocation"
)]
pub enum AnyIndex {
    /// Anisotropic cells: preset `default`.
    Cells(Index),
    /// Trained Gaussians: preset `paper`.
    Gaussians(Box<GaussianIndex>),
}

impl From<Index> for AnyIndex {
    fn from(index: Index) -> Self {
        Self::Cells(index)
    }
}

impl From<GaussianIndex> for AnyIndex {
    fn from(index: GaussianIndex) -> Self {
        Self::Gaussians(Box::new(index))
    }
}

impl Deref for AnyIndex {
    type Target = dyn NeighborIndex;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Cells(index) => index,
            Self::Gaussians(index) => &**index,
        }
    }
}

/// Whether a file holds an index of the published method.
fn holds_gaussians(path: &Path) -> Result<bool> {
    Ok(file::sections_of(path)?.contains(&Kind::Means))
}

impl AnyIndex {
    /// Opens an index file where it lies; see [`Index::open`].
    ///
    /// # Errors
    /// Those of [`Index::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        match holds_gaussians(path)? {
            true => GaussianIndex::open(path).map(Self::from),
            false => Index::open(path).map(Self::from),
        }
    }

    /// Reads an index file into memory and checks all of it; see [`Index::load`].
    ///
    /// # Errors
    /// Those of [`Index::load`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        match holds_gaussians(path)? {
            true => GaussianIndex::load(path).map(Self::from),
            false => Index::load(path).map(Self::from),
        }
    }

    /// Opens an index file whose vectors stay in it and are read when they are needed; see [`Index::open_on_disk`].
    ///
    /// # Errors
    /// Those of [`Index::open_on_disk`], and [`Error::NotOnDisk`] for an index of the published method.
    pub fn open_on_disk(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        match holds_gaussians(path)? {
            true => Err(Error::NotOnDisk),
            false => Index::open_on_disk(path).map(Self::from),
        }
    }

    /// Checks everything in an index file; see [`Index::verify`].
    ///
    /// # Errors
    /// Those of [`Index::verify`].
    pub fn verify(path: impl AsRef<Path>) -> Result<Summary> {
        let path = path.as_ref();
        match holds_gaussians(path)? {
            true => GaussianIndex::verify(path),
            false => Index::verify(path),
        }
    }

    /// The index that [`NeighborIndex::to_bytes`] gave the bytes of.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        match file::sections_in(bytes)?.contains(&Kind::Means) {
            true => GaussianIndex::from_bytes(bytes).map(Self::from),
            false => Index::from_bytes(bytes).map(Self::from),
        }
    }

    /// The parameters that it was built with.
    pub fn config(&self) -> AnyConfig {
        match self {
            Self::Cells(index) => AnyConfig::Cells(index.config().clone()),
            Self::Gaussians(index) => AnyConfig::Gaussians(Box::new(index.config().clone())),
        }
    }

    /// Replaces what the index carries for its points beside the vectors.
    pub fn set_attachment(&mut self, attachment: Attachment) {
        match self {
            Self::Cells(index) => index.set_attachment(attachment),
            Self::Gaussians(index) => index.set_attachment(attachment),
        }
    }

    /// Adds vectors under new identifiers; see [`Index::add`] and [`GaussianIndex::add`].
    ///
    /// # Errors
    /// Those of the two.
    pub fn add(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        match self {
            Self::Cells(index) => index.add(vectors, ids),
            Self::Gaussians(index) => index.add(vectors, ids),
        }
    }

    /// Removes points and returns how many there were; see [`Index::remove`] and [`GaussianIndex::remove`].
    ///
    /// # Errors
    /// Those of the two.
    pub fn remove(&mut self, ids: &[u64]) -> Result<usize> {
        match self {
            Self::Cells(index) => index.remove(ids),
            Self::Gaussians(index) => index.remove(ids),
        }
    }

    /// Replaces the vectors of existing identifiers; see [`Index::update`] and [`GaussianIndex::update`].
    ///
    /// # Errors
    /// Those of the two.
    pub fn update(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        match self {
            Self::Cells(index) => index.update(vectors, ids),
            Self::Gaussians(index) => index.update(vectors, ids),
        }
    }

    /// Adds or replaces vectors; see [`Index::upsert`] and [`GaussianIndex::upsert`].
    ///
    /// # Errors
    /// Those of the two.
    pub fn upsert(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        match self {
            Self::Cells(index) => index.upsert(vectors, ids),
            Self::Gaussians(index) => index.upsert(vectors, ids),
        }
    }

    /// The index of the default preset, which keeps track of its drift, trains itself and lives in a directory.
    ///
    /// # Errors
    /// [`Error::Unchanging`] for an index of the published method.
    pub fn updatable(&self) -> Result<&Index> {
        match self {
            Self::Cells(index) => Ok(index),
            Self::Gaussians(_) => Err(Error::Unchanging),
        }
    }

    /// The same index without pending changes; one of the published method has none.
    ///
    /// # Errors
    /// Those of [`Index::compact`].
    pub fn compacted(mut self) -> Result<Self> {
        if let Self::Cells(index) = &mut self {
            index.compact()?;
        }
        Ok(self)
    }

    /// What a search does unless it says otherwise: the recall that it aims at, or the cells and the share of bins.
    pub fn usual_search(&self) -> Search {
        match self {
            Self::Cells(index) => Search::new(1).recall(index.config().tuning.recall),
            Self::Gaussians(index) => {
                let usual = &index.config().search;
                Search::new(1).probes(usual.probes).bins(usual.bins)
            }
        }
    }

    /// What happened during training, epoch by epoch, as JSON; only the published method has epochs.
    pub fn history(&self) -> Option<serde_json::Value> {
        match self {
            Self::Cells(_) => None,
            Self::Gaussians(index) => serde_json::to_value(index.history()).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_kind_is_built_saved_and_opened_through_the_door() {
        let folder = tempfile::tempdir().unwrap();
        let values: Vec<f32> = (0..1200_u16).map(|i| f32::from(i * 37 % 401)).collect();
        let rows = Rows::new(&values, 4).unwrap();
        for preset in [Preset::Default, Preset::Paper] {
            let mut config = AnyConfig::new(preset);
            config.set("seed", "3").unwrap();
            if preset == Preset::Paper {
                config.set("initial_cells", "4").unwrap();
                config.set("epochs", "3").unwrap();
            }
            let builder = AnyBuilder::new(config.clone()).threads(1);
            let (index, _) = builder.build(rows).unwrap();
            assert_eq!(index.preset(), preset.name());
            assert_eq!(index.config(), config);
            assert_eq!(index.takes_recall(), preset == Preset::Default);
            assert_eq!(index.updatable().is_ok(), preset == Preset::Default);
            assert_eq!(index.history().is_some(), preset == Preset::Paper);

            let path = folder.path().join(preset.name());
            index.save(&path).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(index.to_bytes().unwrap(), bytes);
            assert_eq!(AnyIndex::verify(&path).unwrap().points, 300);
            let search = Search::new(3).exact(true);
            let expected = index.search(rows.row(5), &search).unwrap().hits;
            assert_eq!(expected[0].id, 5);
            for opened in [
                AnyIndex::open(&path).unwrap(),
                AnyIndex::load(&path).unwrap(),
                AnyIndex::from_bytes(&bytes).unwrap(),
            ] {
                assert_eq!(opened, index);
                let found = opened.search(rows.row(5), &search).unwrap().hits;
                assert_eq!(found, expected);
            }
            match (preset, AnyIndex::open_on_disk(&path)) {
                (Preset::Default, Ok(opened)) => {
                    let found = opened.search(rows.row(5), &search).unwrap().hits;
                    assert_eq!(found, expected);
                }
                (Preset::Paper, Err(Error::NotOnDisk)) => {}
                (_, other) => panic!("{preset:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn either_kind_is_changed_through_the_door() {
        let values: Vec<f32> = (0..1200_u16).map(|i| f32::from(i * 37 % 401)).collect();
        let rows = Rows::new(&values, 4).unwrap();
        for preset in [Preset::Default, Preset::Paper] {
            let mut config = AnyConfig::new(preset);
            if preset == Preset::Paper {
                config.set("initial_cells", "4").unwrap();
                config.set("epochs", "3").unwrap();
            }
            let builder = AnyBuilder::new(config).threads(1);
            let (mut index, _) = builder.build(rows.slice(0..200)).unwrap();
            let before = index.clone();
            let ids: Vec<u64> = (200..300).collect();
            index.add(rows.slice(200..300), &ids).unwrap();
            assert!(matches!(
                index.add(rows.slice(0..1), &[7]),
                Err(Error::IdExists { id: 7 })
            ));
            assert_eq!(index.remove(&[3, 299, 4000]).unwrap(), 2);
            index.update(rows.slice(3..4), &[8]).unwrap();
            index.upsert(rows.slice(8..10), &[3, 9]).unwrap();
            assert_eq!((before.len(), index.len()), (200, 299));
            let search = Search::new(1).exact(true);
            for (row, id) in [(3, 8), (8, 3), (298, 298)] {
                let found = index.search(rows.row(row), &search).unwrap().hits;
                assert_eq!((found[0].id, found[0].distance), (id, 0.0), "{preset:?}");
            }
        }
    }

    #[test]
    fn files_that_are_no_index_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, b"no index").unwrap();
        assert!(matches!(AnyIndex::open(&path), Err(Error::Format { .. })));
        assert!(matches!(
            AnyIndex::from_bytes(b"no index"),
            Err(FormatError::NotAnIndex)
        ));
    }
}
