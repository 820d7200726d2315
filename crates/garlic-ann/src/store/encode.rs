//! From an index to the bytes of its sections.

use std::io::{self, Write};

use serde::Serialize;

use super::decode::{Element, Meta};
use super::error::Fault;
use super::layout::Kind;
use super::write::{Aligned, Sections, put};
use super::{MAX_META, published, sound, tempered};
use crate::config::Config;
use crate::index::{Body, Calibration, Coverage, Index, Ledger, Stored};
use crate::train::History;

/// What META holds, borrowed; [`Meta`] is its owner.
#[derive(Serialize)]
struct MetaView<'a> {
    dim: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest: Option<f32>,
    points: usize,
    cells: usize,
    element: Element,
    config: &'a Config,
    body: BodyView<'a>,
    ledger: Ledger,
}

/// The small parts of a body, borrowed; [`BodyMeta`](super::decode::BodyMeta) is their owner.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum BodyView<'a> {
    Published {
        coverage: &'a Coverage,
        history: &'a History,
    },
    Tempered {
        calibration: &'a Calibration,
    },
}

/// An index with its META section ready.
pub(super) struct Source<'a> {
    index: &'a Index,
    meta: Vec<u8>,
}

impl<'a> Source<'a> {
    pub(super) fn new(index: &'a Index) -> io::Result<Self> {
        let body = match &index.body {
            Body::Published(body) => BodyView::Published {
                coverage: &body.coverage,
                history: &body.history,
            },
            Body::Tempered(body) => BodyView::Tempered {
                calibration: &body.calibration,
            },
        };
        let meta = serde_json::to_vec(&MetaView {
            dim: index.space.dim(),
            longest: index.embedding.longest(),
            points: index.ids.len(),
            cells: index.cells(),
            element: Element::of(&index.vectors),
            config: &index.config,
            body,
            ledger: index.ledger,
        })?;
        Ok(Self { index, meta })
    }

    /// Fails for an index that could be written but not opened again.
    pub(super) fn check(&self, file_len: u64) -> io::Result<()> {
        let refuse = |message: String| Err(io::Error::new(io::ErrorKind::InvalidData, message));
        if self.meta.len() as u64 > MAX_META {
            let len = self.meta.len();
            return refuse(format!(
                "configuration and history take {len} bytes, more than the {MAX_META} an index file holds; \
                 train fewer epochs"
            ));
        }
        // JSON has no NaN and no infinity: they come back as an error.
        if let Err(error) = serde_json::from_slice::<Meta>(&self.meta) {
            return refuse(format!(
                "configuration, history or calibration cannot be stored, probably because a number is not \
                 finite: {error}"
            ));
        }
        if let Stored::F16(halves) = &self.index.vectors
            && let Some(at) = sound::first_endless(halves)
        {
            return refuse(format!(
                "vector {} has a coordinate too large for half precision; build the index with `store` f32",
                self.index.ids[at / self.index.space.dim()]
            ));
        }
        match &self.index.body {
            Body::Published(body) => match published::too_many_steps(body, file_len) {
                Some(message) => refuse(message),
                None => Ok(()),
            },
            Body::Tempered(body) => match sound::check(self.index, body) {
                Ok(()) => Ok(()),
                Err(Fault::Io(error)) => Err(error),
                Err(Fault::Format(error)) => {
                    refuse(format!("it could not be opened again: {error}"))
                }
            },
        }
    }

    fn space(&self, out: &mut dyn Write) -> io::Result<()> {
        let space = &self.index.space;
        let rotation = space.rotation.as_ref();
        let rows = rotation.map_or(0, |rotation| rotation.rows());
        let mut out = Aligned::new(out);
        out.put(&[space.mean.len() as u64, rows as u64])?;
        out.array(&space.mean)?;
        out.array(&space.scale)?;
        out.array(rotation.map_or(&[][..], |rotation| rotation.as_slice()))
    }

    fn vectors(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.index.vectors {
            Stored::F32(values) => put(out, values),
            Stored::F16(halves) => put(out, halves),
            Stored::U8(bytes) => put(out, bytes),
        }
    }
}

impl Sections for Source<'_> {
    fn kinds(&self) -> &'static [Kind] {
        match &self.index.body {
            Body::Published(_) => Kind::PUBLISHED,
            Body::Tempered(_) => Kind::TEMPERED,
        }
    }

    fn write_section(&self, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
        match kind {
            Kind::Meta => out.write_all(&self.meta),
            Kind::Space => self.space(out),
            Kind::Vectors => self.vectors(out),
            Kind::Ids => put(out, &self.index.ids),
            Kind::Means | Kind::Factors | Kind::Frames | Kind::Bins => match &self.index.body {
                Body::Published(body) => published::write(body, kind, out),
                Body::Tempered(_) => Ok(()),
            },
            Kind::Cells | Kind::Learned | Kind::Codes => match &self.index.body {
                Body::Published(_) => Ok(()),
                Body::Tempered(body) => tempered::write(body, kind, out),
            },
        }
    }
}
