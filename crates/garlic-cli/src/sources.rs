//! Where the public data sets are: the same names and addresses as in `python/garlic_ann/datasets.py`.

/// Address of the ANN-Benchmarks files.
const BASE: &str = "https://ann-benchmarks.com/";

/// The sets of ANN-Benchmarks that hold vectors of numbers.
pub(crate) const NAMES: [&str; 11] = [
    "deep-image-96-angular",
    "fashion-mnist-784-euclidean",
    "gist-960-euclidean",
    "glove-25-angular",
    "glove-50-angular",
    "glove-100-angular",
    "glove-200-angular",
    "lastfm-64-dot",
    "mnist-784-euclidean",
    "nytimes-256-angular",
    "sift-128-euclidean",
];

/// Published sizes of these sets in MiB, in the same order; a download may be twice as large.
const MIB: [u64; NAMES.len()] = [3687, 217, 3687, 121, 235, 463, 918, 135, 217, 301, 501];

/// Most bytes of a file of labels, which have a few tens of kilobytes.
const LABEL_BYTES: u64 = 1 << 20;

/// The sets of images whose classes can be had.
pub(crate) const LABELLED: [&str; 2] = ["mnist", "fashion-mnist"];

/// Where the labels are, and the MD5 that their publishers give: of the training images, of the test images.
const LABELS: [(&str, [&str; 2]); 2] = [
    (
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        [
            "d53e105ee54ea40749a09fcbcd1e9432",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ],
    ),
    (
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        [
            "25c81989df183df01b3e8a0aad5dffbe",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ],
    ),
];

/// What a file must begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Hdf5,
    Gzip,
}

impl Format {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hdf5 => "HDF5",
            Self::Gzip => "gzip",
        }
    }

    /// The first bytes of every file of the format.
    pub(crate) fn signature(self) -> &'static [u8] {
        match self {
            Self::Hdf5 => b"\x89HDF\r\n\x1a\n",
            Self::Gzip => b"\x1f\x8b",
        }
    }

    /// Whether a file that begins with `start` may be of the format, as far as can be told.
    pub(crate) fn may_begin(self, start: &[u8]) -> bool {
        let signature = self.signature();
        let len = start.len().min(signature.len());
        start[..len] == signature[..len]
    }
}

/// One file to download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Where it is.
    pub(crate) url: String,
    /// What it is called in the data directory.
    pub(crate) file: String,
    /// The checksum that its publisher gives, if any.
    pub(crate) md5: Option<&'static str>,
    /// What it begins with.
    pub(crate) format: Format,
    /// Most bytes that it may have.
    pub(crate) most: u64,
}

/// The file of a data set; `base` replaces the public address.
pub(crate) fn set(name: &str, base: Option<&str>) -> Source {
    Source {
        url: format!("{}{name}.hdf5", base.unwrap_or(BASE)),
        file: format!("{name}.hdf5"),
        md5: None,
        format: Format::Hdf5,
        most: NAMES
            .iter()
            .position(|known| *known == name)
            .map_or(0, |at| (2 * MIB[at]) << 20),
    }
}

/// The files of labels of one of [`LABELLED`]; nothing for other names.
pub(crate) fn labels(name: &str, base: Option<&str>) -> Vec<Source> {
    let Some(place) = LABELLED.iter().position(|known| *known == name) else {
        return Vec::new();
    };
    let (public, sums) = LABELS[place];
    let parts = ["train", "t10k"].into_iter().zip(sums);
    parts
        .map(|(part, md5)| Source {
            url: format!("{}{part}-labels-idx1-ubyte.gz", base.unwrap_or(public)),
            file: format!("{name}-{part}-labels.gz"),
            md5: Some(md5),
            format: Format::Gzip,
            most: LABEL_BYTES,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_has_the_same_table() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../python/garlic_ann/datasets.py"
        );
        let python = std::fs::read_to_string(path).unwrap();
        let quoted = |text: &str| python.contains(&format!("\"{text}\""));
        let names = python.split_once("NAMES = (").unwrap().1;
        let names = names.split_once(')').unwrap().0;
        assert_eq!(names.matches('"').count(), 2 * NAMES.len());
        assert!(
            NAMES
                .iter()
                .all(|name| names.contains(&format!("\"{name}\"")))
        );
        for (name, mib) in NAMES.iter().zip(MIB) {
            let entry = format!("\"{name}\": {mib},");
            assert!(python.contains(&entry), "{entry}");
        }
        assert!(quoted(BASE));
        for (name, (base, sums)) in LABELLED.iter().zip(LABELS) {
            assert!(quoted(name) && quoted(base) && sums.iter().all(|sum| quoted(sum)));
        }
    }

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        for format in [Format::Hdf5, Format::Gzip] {
            let signature = format.signature();
            assert!(format.may_begin(signature) && format.may_begin(&signature[..1]));
            assert!(format.may_begin(&[signature, b"more"].concat()));
            assert!(!format.may_begin(b"<!DOCTYPE html>") && !format.may_begin(b"<"));
        }
    }

    #[test]
    fn public_addresses_are_encrypted() {
        let mut all = vec![set(NAMES[0], None)];
        all.extend(LABELLED.iter().flat_map(|name| labels(name, None)));
        assert_eq!(all.len(), 5);
        assert!(all.iter().all(|source| source.url.starts_with("https://")));
        assert!(labels("sift", None).is_empty());
    }
}
