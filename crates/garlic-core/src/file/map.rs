//! Maps a file into memory. This is the only unsafe code of the file format.

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// Maps a whole file for reading.
#[allow(unsafe_code)]
pub fn map_file(file: &File) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only, and only shared slices of it are handed out. No process may change or shorten
    // the file in place while it is mapped. `Index::open` requires this of the user, and `atomic`, the only writer
    // here, replaces files under a new inode instead of changing them. If the file is overwritten all the same, the
    // values are wrong but all accesses stay in bounds, because `bins/access.rs` of garlic-ann copies the tables that
    // lead to other data.
    unsafe { Mmap::map(file) }
}
