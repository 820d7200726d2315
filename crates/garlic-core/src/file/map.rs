//! Mapping a file into memory: the only unsafe code of the store.

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// Maps a whole file for reading.
#[allow(unsafe_code)]
pub fn map_file(file: &File) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only and only shared slices of it are handed out. What remains is that no process
    // may change or shorten the file in place while it is mapped: `Index::open` asks that of the user, and `atomic`,
    // the only writer here, replaces files under a new inode instead of changing them. Whoever does it all the same
    // finds wrong numbers, not wrong places: `cell/learned/access.rs` copies the tables that lead to others.
    unsafe { Mmap::map(file) }
}
