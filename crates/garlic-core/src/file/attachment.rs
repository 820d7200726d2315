//! The section TABLE: the blocks of an attachment.

use std::io::{self, Write};

use bytes::Bytes;

use super::error::Fault;
use super::layout::Kind;
use super::read::Reader;
use super::source::Source;
use super::write::Aligned;
use crate::attachment::Attachment;

/// Writes the blocks of an attachment: their number, their lengths, and each aligned.
///
/// # Errors
/// Those of `out`.
pub fn put_attachment(blocks: &[Bytes], out: &mut dyn Write) -> io::Result<()> {
    let mut out = Aligned::new(out);
    out.put(&[blocks.len() as u64])?;
    let lengths: Vec<u64> = blocks.iter().map(|block| block.len() as u64).collect();
    out.put(&lengths)?;
    blocks.iter().try_for_each(|block| out.array::<u8>(block))
}

/// Reads the attachment of a file, if it has one. It must be the last section.
///
/// # Errors
/// Fails if the section is damaged. The blocks themselves are not looked into.
pub fn read_attachment<R: Source>(reader: &mut Reader<R>) -> Result<Attachment, Fault> {
    if reader.layout().length(Kind::Table).is_none() {
        return Ok(Attachment::default());
    }
    let blocks = reader.large_section(Kind::Table, |section| {
        let count = section.word::<u64>()?;
        let lengths: Vec<u64> = section.words(count)?;
        let shapes: Vec<_> = lengths.iter().map(|length| (Some(*length), 1)).collect();
        section.expect_arrays(&shapes)?;
        lengths
            .iter()
            .map(|length| section.block(*length))
            .collect()
    })?;
    Ok(Attachment::from_blocks(blocks))
}
