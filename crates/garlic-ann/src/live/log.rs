//! The log: all batches since the checkpoint, one record each.
//!
//! Reading distinguishes two cases. A *torn tail* consists of records that were never acknowledged, left by a power
//! cut or a kill. It is dropped. *Damage* is a wrong record although a later record proves that it had reached the
//! device. It is an error, and nothing is dropped. For this proof, every record stores how many earlier records were
//! durable when it was written.

use std::io::{self, SeekFrom, Write};

use super::disk::{Input, Output};
use super::record::{ALIGNMENT, Batch, Change, Header, MAGIC, RECORD_HEADER};
use garlic_core::Error;

/// Bytes of the log header.
pub(super) const LOG_HEADER: usize = 32;
/// The version of the log that is written and read.
pub(super) const LOG_VERSION: u32 = 1;
const LOG_MAGIC: [u8; 8] = *b"GARLOG\0\x1a";
/// Records up to this size are written with one call.
const MAX_SINGLE_WRITE: usize = 256 * 1024;
/// Number of bytes that are searched at a time for a later record.
const SEARCH_WINDOW: usize = 64 * 1024;

/// The log header.
pub(super) fn header(generation: u64, dim: usize) -> [u8; LOG_HEADER] {
    let mut bytes = [0; LOG_HEADER];
    bytes[..8].copy_from_slice(&LOG_MAGIC);
    bytes[8..12].copy_from_slice(&LOG_VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&generation.to_le_bytes());
    bytes[24..].copy_from_slice(&(dim as u64).to_le_bytes());
    let checksum = crc32fast::hash(&bytes);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Appends to a log.
pub(super) struct Appender {
    file: Box<dyn Output>,
    generation: u64,
    /// Length of the log in bytes.
    pub(super) length: u64,
    /// Number of records in the log.
    pub(super) records: u64,
    /// Number of records known to be on the device.
    durable: u64,
}

impl Appender {
    /// Continues after `records` records, all of them on the device.
    pub(super) fn new(file: Box<dyn Output>, generation: u64, length: u64, records: u64) -> Self {
        Self {
            file,
            generation,
            length,
            records,
            durable: records,
        }
    }

    /// Appends a batch. After an error the end of the file is unknown and nothing more may be appended.
    pub(super) fn append(&mut self, batch: &Batch<'_>) -> io::Result<()> {
        let (mut bytes, vectors, padding) =
            batch.encode(self.generation, self.records, self.durable);
        self.length += (bytes.len() + vectors.len() + padding.len()) as u64;
        if bytes.len() + vectors.len() <= MAX_SINGLE_WRITE {
            bytes.extend_from_slice(&vectors);
            bytes.extend_from_slice(&padding);
            self.file.write_all(&bytes)?;
        } else {
            self.file.write_all(&bytes)?;
            self.file.write_all(&vectors)?;
            self.file.write_all(&padding)?;
        }
        self.records += 1;
        Ok(())
    }

    /// Syncs all records to the device. After an error they may be lost, even if a later sync succeeds.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.durable < self.records {
            self.file.sync()?;
            self.durable = self.records;
        }
        Ok(())
    }
}

/// Result of reading a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replay {
    /// Number of records read.
    pub(super) records: u64,
    /// End of the last record. What follows is a torn tail.
    pub(super) end: u64,
}

/// Why a log could not be read.
#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    /// The bytes at `offset` are not those that were written.
    Damaged {
        offset: u64,
        message: String,
    },
    /// The index rejected the record at `offset`.
    Refused {
        offset: u64,
        error: Error,
    },
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn damaged(offset: u64, message: impl Into<String>) -> Fault {
    Fault::Damaged {
        offset,
        message: message.into(),
    }
}

/// Reads a log of `length` bytes and calls `apply` with its batches in order.
///
/// Records appended after `length` are ignored. No allocation is larger than `length`.
pub(super) fn read(
    input: &mut dyn Input,
    length: u64,
    generation: u64,
    dim: usize,
    mut apply: impl FnMut(Change) -> Result<(), Error>,
) -> Result<Replay, Fault> {
    check_header(input, length, generation, dim)?;
    let mut found = Replay {
        records: 0,
        end: LOG_HEADER as u64,
    };
    let mut payload = Vec::new();
    while found.end < length {
        let offset = found.end;
        match next(input, length, generation, found, &mut payload)? {
            Next::Record(header, end) => {
                let change = Change::decode(&header, dim, &payload)
                    .map_err(|message| damaged(offset, message))?;
                apply(change).map_err(|error| Fault::Refused { offset, error })?;
                found.end = end;
                found.records += 1;
            }
            Next::Wrong { resume } => {
                if let Some(later) =
                    durability_proof(input, resume, length, generation, found.records)?
                {
                    let message = format!(
                        "record {} is damaged, but the record at byte {later} was written after it",
                        found.records
                    );
                    return Err(damaged(offset, message));
                }
                break;
            }
        }
    }
    Ok(found)
}

fn check_header(
    input: &mut dyn Input,
    length: u64,
    generation: u64,
    dim: usize,
) -> Result<(), Fault> {
    if length < LOG_HEADER as u64 {
        return Err(damaged(0, "the file is shorter than its header"));
    }
    let mut bytes = [0; LOG_HEADER];
    input.seek(SeekFrom::Start(0))?;
    input.read_exact(&mut bytes)?;
    let expected = header(generation, dim);
    if bytes == expected {
        return Ok(());
    }
    if bytes[..8] != LOG_MAGIC {
        return Err(damaged(0, "the file does not begin with the log signature"));
    }
    if bytes[8..12] != expected[8..12] {
        let version = u32::from_le_bytes([8, 9, 10, 11].map(|i| bytes[i]));
        let message =
            format!("log version {version}, this program reads {LOG_VERSION}; update the program");
        return Err(damaged(8, message));
    }
    let message = "the header is damaged, or belongs to the log of another checkpoint";
    Err(damaged(12, message))
}

enum Next {
    /// A valid record with its payload, and its end.
    Record(Header, u64),
    /// No valid record. A later record can only begin at `resume` or after it.
    Wrong { resume: u64 },
}

fn next(
    input: &mut dyn Input,
    length: u64,
    generation: u64,
    found: Replay,
    payload: &mut Vec<u8>,
) -> Result<Next, Fault> {
    let offset = found.end;
    let behind = offset + RECORD_HEADER as u64;
    if behind > length {
        return Ok(Next::Wrong { resume: length });
    }
    let mut bytes = [0; RECORD_HEADER];
    input.seek(SeekFrom::Start(offset))?;
    input.read_exact(&mut bytes)?;
    let header = match Header::from_bytes(&bytes, generation) {
        Some(header) if header.sequence == found.records => header,
        _ => return Ok(Next::Wrong { resume: offset }),
    };
    // The header is valid, so its length is right, and the next record begins after the payload.
    let end = header
        .padded()
        .and_then(|padded| behind.checked_add(padded));
    let Some(end) = end.filter(|end| *end <= length) else {
        return Ok(Next::Wrong { resume: length });
    };
    payload.clear();
    let size = usize::try_from(end - behind).unwrap_or(usize::MAX);
    payload.try_reserve_exact(size).map_err(|_| {
        io::Error::new(
            io::ErrorKind::OutOfMemory,
            format!("a record of {size} bytes is more than the system has memory for"),
        )
    })?;
    payload.resize(size, 0);
    input.read_exact(payload)?;
    Ok(if header.matches(payload) {
        Next::Record(header, end)
    } else {
        Next::Wrong { resume: end }
    })
}

/// Start of a record which proves that record number `lost` was on the device, if there is one.
fn durability_proof(
    input: &mut dyn Input,
    from: u64,
    length: u64,
    generation: u64,
    lost: u64,
) -> Result<Option<u64>, Fault> {
    let step = ALIGNMENT as usize;
    let mut window = vec![0; (length - from).min(SEARCH_WINDOW as u64) as usize];
    let mut offset = from.next_multiple_of(ALIGNMENT);
    while offset + RECORD_HEADER as u64 <= length {
        let take = (length - offset).min(window.len() as u64) as usize;
        let window = &mut window[..take];
        input.seek(SeekFrom::Start(offset))?;
        input.read_exact(window)?;
        let mut at = 0;
        while let Some(bytes) = window[at..].first_chunk::<RECORD_HEADER>() {
            if bytes[..4] == MAGIC
                && let Some(header) = Header::from_bytes(bytes, generation)
                && lost < header.durable
                && header.durable <= header.sequence
            {
                return Ok(Some(offset + at as u64));
            }
            at += step;
        }
        offset += at as u64;
    }
    Ok(None)
}
