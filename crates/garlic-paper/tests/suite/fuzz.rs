//! Index files that were changed at random, most of them with right checksums so that the content is reached: an
//! error or other answers, never a panic, and never more memory than the file's size justifies.
//! `GARLIC_FUZZ_ITERATIONS` sets how many files are tried.

use std::path::Path;

use crate::fuzzing::{Meter, Random, iterations, metered, mutate, scribble};
use garlic_paper::GaussianIndex;

#[global_allocator]
static METER: Meter = Meter;

/// Memory besides what the file's size justifies; edges of grids and scratch of searches.
const FIXED: usize = 512 << 20;
const FACTOR: usize = 64;

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Gives a file of any content the length and the checksums that its table asks for.
fn repair(bytes: &mut [u8]) {
    const HEADER: usize = 32;
    const ENTRY: usize = 24;
    if bytes.len() < HEADER {
        return;
    }
    let len = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&len.to_le_bytes());
    let sections = (word(bytes, 8) >> 32).min(64) as usize;
    let head = HEADER + sections * ENTRY;
    if bytes.len() < head {
        return;
    }
    for entry in (HEADER..head).step_by(ENTRY) {
        let (from, len) = (word(bytes, entry + 8), word(bytes, entry + 16));
        let range = from as usize..from.saturating_add(len) as usize;
        if let Some(section) = bytes.get(range) {
            let checksum = crc32fast::hash(section);
            bytes[entry + 4..entry + 8].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    bytes[24..28].fill(0);
    let checksum = crc32fast::hash(&bytes[..head]);
    bytes[24..28].copy_from_slice(&checksum.to_le_bytes());
}

/// Every way to read a file; tells which of them gave an index.
fn read_all(bytes: &[u8], path: &Path) -> [bool; 3] {
    let from_bytes = GaussianIndex::from_bytes(bytes);
    if let Ok(index) = &from_bytes {
        crate::common::search_and_filter(index);
    }
    crate::common::put(path, bytes);
    let opened = GaussianIndex::open(path);
    if let Ok(index) = &opened {
        crate::common::search_and_filter(index);
    }
    // Reading what was read from memory already costs time and finds nothing else.
    let loaded = from_bytes.is_ok() || bytes.len().is_multiple_of(16);
    if loaded {
        assert_eq!(GaussianIndex::load(path).is_ok(), from_bytes.is_ok());
        let verified = GaussianIndex::verify(path);
        assert!(from_bytes.is_ok() || verified.is_err());
    }
    // Whatever is sound can be opened, and then answers are the same.
    if let Ok(index) = &from_bytes {
        assert_eq!(
            crate::common::search_and_filter(&opened.unwrap()),
            crate::common::search_and_filter(index)
        );
        return [true; 3];
    }
    [false, opened.is_ok(), false]
}

#[test]
fn changed_files_are_refused_or_searched() {
    let values = crate::common::clumps(40);
    let isotropic =
        crate::common::config(&[("covariance", "isotropic"), ("epochs", "2"), ("rank", "1")]);
    let sound = [
        crate::common::small(),
        crate::common::build(isotropic, &values, crate::common::DIM),
    ];
    let sound = sound.map(|index| index.to_bytes().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fuzzed.garlic");
    let mut random = Random(4);
    let (mut read, mut opened) = (0, 0);
    let files = iterations(2000);
    for iteration in 0..files {
        let which = random.below(sound.len());
        let mut bytes = sound[which].clone();
        let other = &sound[random.below(sound.len())];
        if random.below(4) > 0 {
            // The content alone, most often behind META, which is text and refused when it is not.
            let text = if random.below(8) > 0 {
                word(&bytes, 48)
            } else {
                0
            };
            let body = 256 + text as usize;
            for _ in 0..1 + random.below(4) {
                scribble(
                    &mut random,
                    &mut bytes[body..],
                    &other[body.min(other.len())..],
                );
            }
        } else {
            mutate(&mut random, &mut bytes, other);
        }
        if random.below(8) > 0 {
            repair(&mut bytes);
        }
        let attempt = || std::panic::catch_unwind(|| read_all(&bytes, &path));
        let (outcome, most) = metered(attempt);
        let Ok([whole, mapped, _]) = outcome else {
            panic!("file {iteration} of kind {which}");
        };
        (read, opened) = (read + u64::from(whole), opened + u64::from(mapped));
        assert!(
            most <= FIXED + FACTOR * bytes.len(),
            "file {iteration} of kind {which}: {most} bytes of memory for {} bytes",
            bytes.len()
        );
    }
    // The content is reached: files are accepted by both ways, more of them where vectors are not looked at.
    if files >= 1000 {
        assert!(read > files / 50, "{read} of {files} were read");
        assert!(opened > files / 20, "{opened} of {files} were opened");
    }
}
