//! Rows of values in pages that snapshots share.
//!
//! A clone copies a pointer for every few hundred rows. A change copies the page that it touches, if another clone has
//! it too.

use std::sync::Arc;

/// Pages of a folder.
const FOLDER_PAGES: usize = 64;

/// A page, or nothing if none of its rows was written.
type Page<T> = Option<Arc<[T]>>;

/// Rows of `width` values, `ROWS` to a page. Pages exist once one of their rows is written.
#[derive(Clone, Debug)]
pub(crate) struct Pages<T, const ROWS: usize> {
    width: usize,
    folders: Vec<Option<Arc<Vec<Page<T>>>>>,
}

impl<T: Clone, const ROWS: usize> Pages<T, ROWS> {
    /// No pages, for rows of this width.
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width,
            folders: Vec::new(),
        }
    }

    /// The page of a row, if it was written, and the number of the row in it.
    #[inline]
    pub(crate) fn page(&self, row: usize) -> Option<(&[T], usize)> {
        let page = row / ROWS;
        let folder = self.folders.get(page / FOLDER_PAGES)?.as_ref()?;
        let page = folder[page % FOLDER_PAGES].as_deref()?;
        Some((page, row % ROWS))
    }

    /// A row, if its page was written.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<&[T]> {
        let (page, at) = self.page(row)?;
        page.get(at * self.width..(at + 1) * self.width)
    }

    /// A row to be written. `initial` gives the values of a row that was not written, if its page is new.
    pub(crate) fn row_mut(&mut self, row: usize, initial: impl Fn(usize, &mut Vec<T>)) -> &mut [T] {
        let number = row / ROWS;
        let folder = number / FOLDER_PAGES;
        if folder >= self.folders.len() {
            self.folders.resize(folder + 1, None);
        }
        let folder = self.folders[folder].get_or_insert_with(|| Arc::new(vec![None; FOLDER_PAGES]));
        let page = Arc::make_mut(folder)[number % FOLDER_PAGES].get_or_insert_with(|| {
            let mut values = Vec::with_capacity(ROWS * self.width);
            (number * ROWS..(number + 1) * ROWS).for_each(|row| initial(row, &mut values));
            values.into()
        });
        &mut Arc::make_mut(page)[row % ROWS * self.width..][..self.width]
    }

    /// Bytes of all pages.
    pub(crate) fn bytes(&self) -> u64 {
        let folders = self.folders.iter().flatten();
        let pages = folders.map(|folder| folder.iter().flatten().count() as u64);
        pages.sum::<u64>() * (ROWS * self.width * size_of::<T>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_and_clones_keep_what_they_had() {
        let mut pages: Pages<u32, 4> = Pages::new(2);
        let initial = |row: usize, out: &mut Vec<u32>| out.extend([row as u32, 7]);
        assert_eq!((pages.get(0), pages.get(5000)), (None, None));
        pages.row_mut(1001, initial)[0] = 5;
        assert_eq!(pages.get(1001), Some(&[5, 7][..]));
        assert_eq!(pages.get(1002), Some(&[1002, 7][..]), "of the same page");
        assert_eq!((pages.get(999), pages.get(1004)), (None, None));
        let before = pages.clone();
        pages.row_mut(1001, initial)[1] = 6;
        pages.row_mut(3, initial)[0] = 9;
        assert_eq!(before.get(1001), Some(&[5, 7][..]));
        assert_eq!(before.get(3), None);
        assert_eq!(pages.get(1001), Some(&[5, 6][..]));
        assert_eq!(pages.get(3), Some(&[9, 7][..]));
        assert_eq!((before.bytes(), pages.bytes()), (32, 64));
    }
}
