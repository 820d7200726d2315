//! A record of the log: one batch of changes.
//!
//! `docs/reference/directory-format.md` describes the bytes. The checksum of a record header includes the generation
//! of the log. Old blocks of another log, which a file system may return by mistake, are therefore never valid
//! records.

use std::borrow::Cow;

use garlic_linalg::Rows;

use crate::segment::Index;
use garlic_core::{Bytes, Error, Result};

/// Bytes of a record before its payload.
pub(super) const RECORD_HEADER: usize = 40;
/// Alignment of records.
pub(super) const ALIGNMENT: u64 = 8;
/// Magic bytes of a record.
pub(super) const MAGIC: [u8; 4] = *b"GREC";

/// Added to the kind of a record that has a block for the attachment of the index.
const WITH_BLOCK: u32 = 16;

/// Kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// New points.
    Add = 1,
    /// Remove points.
    Remove = 2,
    /// Replace the vectors of existing points.
    Update = 3,
    /// New points, and the vectors of existing ones.
    Upsert = 4,
}

impl Kind {
    fn of(number: u32) -> Option<Self> {
        [Self::Add, Self::Remove, Self::Update, Self::Upsert]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }

    /// Number of values per identifier.
    fn values(self, dim: usize) -> usize {
        match self {
            Self::Add | Self::Update | Self::Upsert => dim,
            Self::Remove => 0,
        }
    }
}

/// A batch to be logged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch<'a> {
    pub(super) kind: Kind,
    pub(super) ids: &'a [u64],
    /// The vectors one after the other. Empty for a removal.
    pub(super) vectors: &'a [f32],
    /// What it adds to the attachment of the index.
    pub(super) block: Option<&'a [u8]>,
}

impl Batch<'_> {
    /// A copy for later replay, without the block: the journal of a training needs the points only.
    pub(super) fn to_change(self) -> Change {
        Change {
            kind: self.kind,
            ids: self.ids.to_vec(),
            vectors: self.vectors.to_vec(),
            block: None,
        }
    }
}

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Number of the [`Kind`]. Not every number is valid.
    kind: u32,
    /// Number of the record in its log, starting at 0.
    pub(super) sequence: u64,
    /// Number of records of the log that were known to be on the device when this one was written.
    pub(super) durable: u64,
    /// Bytes of the payload, without padding.
    pub(super) length: u64,
    checksum: u32,
}

impl Header {
    /// Reads a header. `None` unless every byte is as written to the log of this generation.
    pub(super) fn from_bytes(bytes: &[u8; RECORD_HEADER], generation: u64) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if bytes[..4] != MAGIC || word(36) != header_checksum(bytes, generation) {
            return None;
        }
        Some(Self {
            kind: word(4),
            sequence: long(8),
            durable: long(16),
            length: long(24),
            checksum: word(32),
        })
    }

    fn to_bytes(self, generation: u64) -> [u8; RECORD_HEADER] {
        let mut bytes = [0; RECORD_HEADER];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.durable.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.length.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.checksum.to_le_bytes());
        let checksum = header_checksum(&bytes, generation);
        bytes[36..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Bytes of the payload with padding, or `None` on overflow.
    pub(super) fn padded(&self) -> Option<u64> {
        self.length.checked_next_multiple_of(ALIGNMENT)
    }

    /// Whether `payload`, including padding, has the right checksum and length.
    pub(super) fn matches(&self, payload: &[u8]) -> bool {
        crc32fast::hash(payload) == self.checksum
    }
}

fn header_checksum(bytes: &[u8; RECORD_HEADER], generation: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&generation.to_le_bytes());
    hasher.update(&bytes[..36]);
    hasher.finalize()
}

impl<'a> Batch<'a> {
    /// The bytes of a record in three parts, so that vectors are not copied: header and identifiers, vectors, block and
    /// padding.
    pub(super) fn encode(
        &self,
        generation: u64,
        sequence: u64,
        durable: u64,
    ) -> (Vec<u8>, Cow<'a, [u8]>, Vec<u8>) {
        let count = self.ids.len() as u64;
        let mut head = vec![0; RECORD_HEADER];
        head.extend_from_slice(&count.to_le_bytes());
        head.extend(self.ids.iter().flat_map(|id| id.to_le_bytes()));
        let vectors: Cow<'a, [u8]> = if cfg!(target_endian = "little") {
            Cow::Borrowed(bytemuck::cast_slice(self.vectors))
        } else {
            Cow::Owned(self.vectors.iter().flat_map(|v| v.to_le_bytes()).collect())
        };
        let mut tail = Vec::new();
        if let Some(block) = self.block {
            tail.extend_from_slice(&(block.len() as u64).to_le_bytes());
            tail.extend_from_slice(block);
        }
        let length = (head.len() - RECORD_HEADER + vectors.len() + tail.len()) as u64;
        tail.resize(
            tail.len() + (length.next_multiple_of(ALIGNMENT) - length) as usize,
            0,
        );
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&head[RECORD_HEADER..]);
        hasher.update(&vectors);
        hasher.update(&tail);
        let header = Header {
            kind: self.kind as u32 + self.block.map_or(0, |_| WITH_BLOCK),
            sequence,
            durable,
            length,
            checksum: hasher.finalize(),
        };
        head[..RECORD_HEADER].copy_from_slice(&header.to_bytes(generation));
        (head, vectors, tail)
    }
}

/// A batch read from the log.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) kind: Kind,
    pub(super) ids: Vec<u64>,
    pub(super) vectors: Vec<f32>,
    pub(super) block: Option<Bytes>,
}

impl Change {
    /// Decodes a payload with its padding. Fails if its counts do not match its length.
    pub(super) fn decode(header: &Header, dim: usize, payload: &[u8]) -> Result<Self, String> {
        let (number, has_block) = match header.kind.checked_sub(WITH_BLOCK) {
            Some(number) => (number, true),
            None => (header.kind, false),
        };
        let kind = Kind::of(number).ok_or_else(|| {
            format!(
                "it is of the unknown kind {}; update the program",
                header.kind
            )
        })?;
        let length = header.length;
        let wrong = || format!("its {length} bytes do not fit the number of its points");
        let (count, rest) = payload.split_first_chunk::<8>().ok_or_else(wrong)?;
        let count = u64::from_le_bytes(*count);
        let values = kind.values(dim) as u64;
        let needed = values
            .checked_mul(4)
            .and_then(|bytes| bytes.checked_add(8)?.checked_mul(count)?.checked_add(8));
        let fits = |needed: u64| match has_block {
            true => needed.checked_add(8).is_some_and(|least| least <= length),
            false => needed == length,
        };
        if !needed.is_some_and(fits) || rest.len() as u64 + 8 < length {
            return Err(wrong());
        }
        let (ids, rest) = rest.split_at(count as usize * 8);
        let (vectors, rest) = rest.split_at((count * values) as usize * 4);
        let (block, padding) = match has_block {
            true => split_block(rest, length - needed.unwrap_or(length)).ok_or_else(wrong)?,
            false => (None, rest),
        };
        if padding.iter().any(|byte| *byte != 0) {
            return Err("its padding is not zero".into());
        }
        let (ids, _) = ids.as_chunks::<8>();
        let (vectors, _) = vectors.as_chunks::<4>();
        Ok(Self {
            kind,
            ids: ids.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
            vectors: vectors
                .iter()
                .map(|bytes| f32::from_le_bytes(*bytes))
                .collect(),
            block,
        })
    }

    /// Applies the batch to `index`, without maintenance.
    pub(super) fn apply(&self, index: &mut Index) -> Result<()> {
        match self.kind {
            Kind::Add => index.add_only(Rows::new(&self.vectors, index.dim())?, &self.ids),
            Kind::Remove => index.remove_only(&self.ids).map(|_| ()),
            Kind::Update => index.update_only(Rows::new(&self.vectors, index.dim())?, &self.ids),
            Kind::Upsert => index.upsert_only(Rows::new(&self.vectors, index.dim())?, &self.ids),
        }?;
        match &self.block {
            Some(block) => (index.attachment.push(block.clone())).map_err(|source| Error::Io {
                path: "the table of the index".into(),
                source,
            }),
            None => Ok(()),
        }
    }
}

/// The block at the start of `bytes`, and the padding after it. The block has its length before it, and both are
/// `length` bytes.
fn split_block(bytes: &[u8], length: u64) -> Option<(Option<Bytes>, &[u8])> {
    let (own, rest) = bytes.split_first_chunk::<8>()?;
    let own = u64::from_le_bytes(*own);
    if own.checked_add(8) != Some(length) {
        return None;
    }
    let (block, padding) = rest.split_at_checked(usize::try_from(own).ok()?)?;
    Some((Some(Bytes::copy_from_slice(block)), padding))
}
