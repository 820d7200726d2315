//! Running the program on small data in a folder of its own.

// Every test file uses a part of this.
#![allow(dead_code, unreachable_pub)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// What a run of the program gave.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// The run must have ended with `code`.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// The run must have failed with `code` and one line that holds all of `parts`.
    #[track_caller]
    pub fn expect_error(self, code: i32, parts: &[&str]) {
        let ran = self.expect(code);
        assert_eq!(ran.stdout, "", "results of a failed run");
        let lines: Vec<&str> = ran
            .stderr
            .lines()
            .filter(|l| l.starts_with("garlic: error: "))
            .collect();
        assert_eq!(lines.len(), 1, "{}", ran.stderr);
        for part in parts {
            assert!(lines[0].contains(part), "no `{part}` in: {}", lines[0]);
        }
    }

    /// The lines of standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }
}

/// The program, with an empty data directory.
pub fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_garlic"));
    command
        .args(args)
        .stdin(Stdio::null())
        .env("GARLIC_DATA", "/nonexistent-data-directory");
    command
}

/// Runs a command to its end.
#[track_caller]
pub fn finish(command: &mut Command) -> Ran {
    let output = command.output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8 output");
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// A folder with small files: `points.npy` (300 x 6), `queries.fvecs` (20 x 6) and, when asked for, an index.
pub struct Lab {
    folder: TempDir,
}

pub const POINTS: usize = 300;
pub const QUERIES: usize = 20;
pub const DIM: usize = 6;

/// More than those that every search reads whole.
pub const MANY: usize = 6000;
pub const ASKED: usize = 40;
pub const WIDE: usize = 8;

/// Vectors of `more.npy`.
pub const MORE: usize = 500;

/// The published method with short training.
pub const QUICK: [&str; 8] = [
    "--preset",
    "paper",
    "--set",
    "initial_cells=6",
    "--set",
    "epochs=4",
    "--set",
    "batch=100",
];

impl Lab {
    pub fn new() -> Self {
        let lab = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        garlic_data::write_npy_f32(lab.path("points.npy"), &clusters(POINTS, DIM, 1), DIM).unwrap();
        garlic_data::write_fvecs(lab.path("queries.fvecs"), &clusters(QUERIES, DIM, 2), DIM)
            .unwrap();
        lab
    }

    /// The same, with `points.garlic` built by the published method.
    pub fn with_index() -> Self {
        let lab = Self::new();
        lab.build(&[]).expect(0);
        lab
    }

    /// `many.npy` (6000 x 8), `asked.fvecs` (40 x 8) and `many.garlic`, built with the default preset.
    pub fn with_default_index() -> Self {
        let lab = Self::new();
        garlic_data::write_npy_f32(lab.path("many.npy"), &clusters(MANY, WIDE, 3), WIDE).unwrap();
        garlic_data::write_fvecs(lab.path("asked.fvecs"), &clusters(ASKED, WIDE, 4), WIDE).unwrap();
        lab.run(&["build", "many.npy", "-o", "many.garlic", "--quiet"])
            .expect(0);
        lab
    }

    /// The same, with the index directory `live` of the same points, and `more.npy` (500 x 8).
    pub fn with_live_index() -> Self {
        let lab = Self::with_default_index();
        lab.run(&["convert", "many.garlic", "live", "--live", "--quiet"])
            .expect(0);
        garlic_data::write_npy_f32(lab.path("more.npy"), &clusters(MORE, WIDE, 9), WIDE).unwrap();
        lab
    }

    /// Identifier and distance of the nearest neighbour of the first vector of `more.npy`.
    #[track_caller]
    pub fn nearest(&self, index: &str) -> (u64, f64) {
        let args = [
            "search", index, "more.npy", "-k", "1", "--exact", "-o", "-", "--json",
        ];
        let first = &self.run(&args).expect(0).json()[0];
        let id = first["ids"][0].as_u64().unwrap();
        (id, first["distances"][0].as_f64().unwrap())
    }

    /// Writes a text file.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the program in the folder.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Ran {
        finish(command(args).current_dir(self.folder()))
    }

    /// `garlic build points.npy -o points.garlic` with short training.
    #[track_caller]
    pub fn build(&self, more: &[&str]) -> Ran {
        let base = ["build", "points.npy", "-o", "points.garlic"];
        self.run(&[&base, &QUICK[..], more].concat())
    }

    /// Names in the folder, sorted; hidden ones too.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Writes an `.fbin` file without any check of its values.
    pub fn raw_fbin(&self, name: &str, values: &[f32], dim: usize) {
        let mut bytes = Vec::new();
        bytes.extend(((values.len() / dim) as u32).to_le_bytes());
        bytes.extend((dim as u32).to_le_bytes());
        values.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
        std::fs::write(self.path(name), bytes).unwrap();
    }
}

/// `n` points around four centres, the same for the same seed.
pub fn clusters(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    (0..n * dim)
        .map(|i| ((i / dim) % 4 * 5 * ((i % dim) % 2 + 1)) as f32 + next())
        .collect()
}

/// Every key of `keys` must be in `object`; `a.b` is `b` inside `a`.
#[track_caller]
pub fn assert_keys(object: &Value, keys: &[&str]) {
    for key in keys {
        let pointer = format!("/{}", key.replace('.', "/"));
        assert!(object.pointer(&pointer).is_some(), "no `{key}` in {object}");
    }
}
