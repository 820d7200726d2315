//! From the bytes of the sections to an index that a search can trust.
//!
//! Arrays are read as they come; what they mean is checked once the section's checksum is known to be right.
//! Whatever passes here must not make a search panic. Of a mapped file only the shapes of the large arrays are
//! known: a search takes them as they are and makes do with any content.

use std::sync::Arc;

use garlic_linalg::Matrix;
use serde::{Deserialize, Serialize};

use super::error::{Fault, inconsistent};
use super::layout::{Kind, Layout};
use super::read::Reader;
use super::source::Source;
use super::{MAX_META, published, sound, tempered};
use crate::config::{Config, Model};
use crate::index::{Body, Calibration, Coverage, Index, Ledger, Stored};
use crate::metric::Embedding;
use crate::space::Space;
use crate::train::History;

/// What META holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    pub(super) dim: u64,
    /// Inner products: the largest length.
    #[serde(default)]
    pub(super) longest: Option<f32>,
    pub(super) points: u64,
    pub(super) cells: u64,
    pub(super) element: Element,
    pub(super) config: Config,
    pub(super) body: BodyMeta,
    /// Not in files of the first programs that wrote this version.
    #[serde(default)]
    pub(super) ledger: Ledger,
}

/// The type of a stored coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Element {
    F32,
    F16,
    U8,
}

impl Element {
    pub(super) fn of(vectors: &Stored) -> Self {
        match vectors {
            Stored::F32(_) => Self::F32,
            Stored::F16(_) => Self::F16,
            Stored::U8(_) => Self::U8,
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
            Self::U8 => 1,
        }
    }
}

/// Which body it is, with its parts that are small.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum BodyMeta {
    Published {
        coverage: Coverage,
        history: History,
    },
    Tempered {
        calibration: Calibration,
    },
}

impl BodyMeta {
    fn kinds(&self) -> &'static [Kind] {
        match self {
            Self::Published { .. } => Kind::PUBLISHED,
            Self::Tempered { .. } => Kind::TEMPERED,
        }
    }

    fn model(&self) -> Model {
        match self {
            Self::Published { .. } => Model::Gaussians,
            Self::Tempered { .. } => Model::Tempered,
        }
    }
}

/// Reads a whole index of `file_len` bytes.
pub(super) fn read_index(inner: impl Source, file_len: u64) -> Result<(Index, Layout), Fault> {
    let mut reader = Reader::open(inner, file_len)?;
    let meta = read_meta(&mut reader)?;
    let embedding = Embedding::restore(meta.config.metric, meta.longest, meta.dim)
        .ok_or_else(|| inconsistent(Kind::Meta, "`longest` is not what the metric asks for"))?;
    let space = read_space(&mut reader, &meta)?;
    let body = match &meta.body {
        BodyMeta::Published { coverage, history } => {
            let body = published::read(&mut reader, &meta, *coverage, history.clone())?;
            Body::Published(Arc::new(body))
        }
        BodyMeta::Tempered { calibration } => {
            sound::check_space(&space)?;
            let body = tempered::read(&mut reader, &meta, &space, calibration.clone())?;
            Body::Tempered(Arc::new(body))
        }
    };
    let vectors = read_vectors(&mut reader, &meta)?;
    let ids = reader.large_section(Kind::Ids, |section| {
        section.expect(product(&[meta.points, 8]))?;
        section.buffer::<u64>(meta.points)
    })?;
    if !reader.stays() {
        check_ids(&ids)?;
    }
    let index = Index::new(
        meta.config,
        embedding,
        space,
        body,
        vectors,
        ids,
        meta.ledger,
    );
    Ok((index, reader.layout().clone()))
}

fn check_ids(ids: &[u64]) -> Result<(), Fault> {
    match ids.iter().position(|id| *id >= 1 << 63) {
        Some(at) => Err(inconsistent(
            Kind::Ids,
            format!(
                "the identifier {} at position {at} is not below 2^63",
                ids[at]
            ),
        )),
        None => Ok(()),
    }
}

fn read_meta<R: Source>(reader: &mut Reader<R>) -> Result<Meta, Fault> {
    let wrong = |message: String| inconsistent(Kind::Meta, message);
    let json = reader.section(Kind::Meta, |section| {
        if section.left() > MAX_META {
            return Err(wrong(format!(
                "{} bytes, at most {MAX_META} are allowed",
                section.left()
            )));
        }
        section.words::<u8>(section.left())
    })?;
    let meta: Meta = serde_json::from_slice(&json).map_err(|error| wrong(error.to_string()))?;
    // Only tempered cells can lose all their points.
    let empty = meta.points == 0 && matches!(meta.body, BodyMeta::Published { .. });
    if meta.dim == 0 || empty || meta.cells == 0 {
        let Meta {
            dim, points, cells, ..
        } = meta;
        return Err(wrong(format!(
            "{points} points of dimension {dim} in {cells} cells are no index"
        )));
    }
    // The largest 32-bit position means "none".
    if meta.points >= u64::from(u32::MAX) {
        return Err(wrong(format!(
            "{} points are more than positions can number",
            meta.points
        )));
    }
    meta.config
        .validate()
        .map_err(|error| wrong(error.to_string()))?;
    if meta.config.model != meta.body.model() {
        return Err(wrong("the configuration asks for another body".into()));
    }
    if let BodyMeta::Tempered { calibration } = &meta.body {
        sound::check_calibration(calibration)?;
    }
    reader.layout().expect(meta.body.kinds())?;
    // The largest section bounds dimension and points by the file's size before anything relies on them.
    let vectors = reader.layout().length(Kind::Vectors);
    if product(&[meta.points, meta.dim, meta.element.bytes()]) != vectors {
        return Err(wrong(format!(
            "{} points of dimension {} do not fit the section VECTORS",
            meta.points, meta.dim
        )));
    }
    sound::check_element(meta.element, meta.dim)?;
    Ok(meta)
}

fn read_space<R: Source>(reader: &mut Reader<R>, meta: &Meta) -> Result<Space, Fault> {
    let (mean, scale, rotation) = reader.section(Kind::Space, |section| {
        let [dim, rows] = [section.word::<u64>()?, section.word::<u64>()?];
        let rows_fit = match meta.body {
            BodyMeta::Published { .. } => rows == 0 || rows == dim,
            BodyMeta::Tempered { .. } => (1..=dim).contains(&rows),
        };
        if dim != meta.dim || !rows_fit {
            let message = format!(
                "dimension {dim} with {rows} axes, where vectors have dimension {}",
                meta.dim
            );
            return Err(inconsistent(Kind::Space, message));
        }
        let values = product(&[rows, dim]);
        section.expect_arrays(&[(Some(dim), 4), (Some(dim), 4), (values, 4)])?;
        let mut values = |count: u64| -> Result<Vec<f32>, Fault> {
            section.align()?;
            section.words(count)
        };
        Ok((values(dim)?, values(dim)?, values(rows * dim)?))
    })?;
    if let Some(at) = scale.iter().position(|scale| *scale < 0.0) {
        return Err(inconsistent(
            Kind::Space,
            format!("the scale of coordinate {at} is negative"),
        ));
    }
    let rotation = match rotation.is_empty() {
        true => None,
        false => Some(matrix(Kind::Space, rotation, meta.dim)?),
    };
    Ok(Space {
        mean,
        scale,
        rotation,
    })
}

fn read_vectors<R: Source>(reader: &mut Reader<R>, meta: &Meta) -> Result<Stored, Fault> {
    reader.large_section(Kind::Vectors, |section| {
        section.expect(product(&[meta.points, meta.dim, meta.element.bytes()]))?;
        let count = meta.points * meta.dim;
        Ok(match meta.element {
            Element::F32 => Stored::F32(section.buffer(count)?),
            Element::F16 => Stored::F16(section.buffer(count)?),
            Element::U8 => Stored::U8(section.buffer(count)?),
        })
    })
}

pub(super) fn matrix(kind: Kind, values: Vec<f32>, cols: u64) -> Result<Matrix, Fault> {
    Matrix::from_vec(values, cols as usize).map_err(|error| inconsistent(kind, error.to_string()))
}

/// The product, unless it overflows.
pub(super) fn product(factors: &[u64]) -> Option<u64> {
    factors
        .iter()
        .try_fold(1_u64, |all, factor| all.checked_mul(*factor))
}
