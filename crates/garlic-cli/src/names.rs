//! From what was typed to a file: paths as they are, other names from the data directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::exit::Fault;
use crate::input::STDIN;
use crate::sources;

/// Extensions of files that hold vectors; where a name fits several files, the first extension wins.
const EXTENSIONS: [&str; 13] = [
    "hdf5", "h5", "npy", "fbin", "u8bin", "fvecs", "bvecs", "parquet", "arrow", "feather", "npz",
    "csv", "tsv",
];

/// The file of a data set: an existing path, `-` for standard input, or a name in the data directory with or without its
/// extension.
pub(crate) fn data(name: &Path) -> anyhow::Result<PathBuf> {
    data_in(name, &garlic_data::data_dir())
}

fn data_in(name: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    if name.exists() || name == Path::new(STDIN) {
        return Ok(name.to_owned());
    }
    if name.components().count() != 1 {
        return Err(Fault::input(format!(
            "{}: no such file; check the path",
            name.display()
        )));
    }
    let found = files(folder);
    let fits = |path: &&PathBuf| {
        path.file_name() == Some(name.as_os_str()) || path.file_stem() == Some(name.as_os_str())
    };
    if let Some(path) = found.iter().find(fits) {
        return Ok(path.clone());
    }
    let typed = name.to_string_lossy();
    let hint = found
        .iter()
        .filter_map(|path| path.file_stem()?.to_str())
        .find(|stem| stem.contains(&*typed) || typed.contains(*stem))
        .map_or_else(
            || match sources::NAMES.contains(&&*typed) {
                true => format!("`garlic datasets --get {typed}` downloads it"),
                false => "`garlic datasets` lists what is there".to_owned(),
            },
            |stem| format!("did you mean `{stem}`?"),
        );
    Err(Fault::input(format!(
        "{typed}: no such file, and no data set of that name in {}; {hint}",
        folder.display()
    )))
}

/// Files with vectors in a folder, by preference of their extension, then by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let rank = |path: &Path| {
        EXTENSIONS
            .iter()
            .position(|e| path.extension().is_some_and(|x| x == *e))
    };
    let mut found: Vec<(usize, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter_map(|path| Some((rank(&path)?, path)))
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_in_the_data_directory() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["mnist-784.hdf5", "mnist-784.npy", "sift.fvecs", "notes.txt"] {
            fs::write(dir.path().join(file), b"").unwrap();
        }
        let find = |name: &str| data_in(Path::new(name), dir.path());
        assert_eq!(
            find("mnist-784").unwrap(),
            dir.path().join("mnist-784.hdf5")
        );
        assert_eq!(
            find("mnist-784.npy").unwrap(),
            dir.path().join("mnist-784.npy")
        );
        assert_eq!(find("sift").unwrap(), dir.path().join("sift.fvecs"));
        assert!(
            find("mnist")
                .unwrap_err()
                .to_string()
                .contains("did you mean `mnist-784`?")
        );
        assert!(
            find("notes")
                .unwrap_err()
                .to_string()
                .contains("garlic datasets")
        );
        assert!(
            find("missing/sift")
                .unwrap_err()
                .to_string()
                .contains("no such file")
        );
        let public = find("gist-960-euclidean").unwrap_err().to_string();
        assert!(
            public.contains("datasets --get gist-960-euclidean"),
            "{public}"
        );
        let path = dir.path().join("sift.fvecs");
        assert_eq!(data_in(&path, Path::new("nowhere")).unwrap(), path);
    }
}
