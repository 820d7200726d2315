//! Every byte of a small index changed, and the file cut at every length: `verify` reports it; opened without, an
//! index gives other answers or none, and never a panic.
//!
//! A part of the bytes is tried; `GARLIC_SOAK=1` tries all.

use std::path::Path;

use garlic_paper::GaussianIndex;

/// Bytes of header and section table.
fn head_len(bytes: &[u8]) -> usize {
    32 + 24 * bytes[12] as usize
}

/// Bytes between two that are tried.
fn stride() -> usize {
    match std::env::var("GARLIC_SOAK") {
        Ok(value) if value == "1" => 1,
        _ => 5,
    }
}

/// Fails unless `verify` and `load` refuse the file, or a mapped index can be searched; tells whether it opened.
fn try_file(path: &Path, bytes: &[u8], what: &str) -> bool {
    crate::common::put(path, bytes);
    assert!(GaussianIndex::verify(path).is_err(), "verify passes {what}");
    assert!(GaussianIndex::load(path).is_err(), "load passes {what}");
    let Ok(index) = GaussianIndex::open(path) else {
        return false;
    };
    let search = || crate::common::search_and_filter(&index);
    assert!(
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(search)).is_ok(),
        "a search panics after {what}"
    );
    true
}

#[test]
fn every_changed_byte_is_reported_and_none_does_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.garlic");
    let sound = crate::common::small().to_bytes().unwrap();
    let head = head_len(&sound);
    let mut opened = 0;
    for at in (0..head).chain((head..sound.len()).step_by(stride())) {
        let changes: Vec<u8> = match at < head {
            true => (0..8).map(|bit| sound[at] ^ (1 << bit)).collect(),
            false => [0xff, 0x01, 0x40].map(|mask| sound[at] ^ mask).to_vec(),
        };
        for value in changes {
            let mut bytes = sound.clone();
            bytes[at] = value;
            let what = format!("byte {at} of {} set to {value}", sound.len());
            opened += usize::from(try_file(&path, &bytes, &what));
            assert!(at >= head || opened == 0, "{what}");
        }
    }
    assert!(opened > 50, "only {opened} damaged files could be opened");
}

#[test]
fn every_shorter_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.garlic");
    let sound = crate::common::small().to_bytes().unwrap();
    for len in (0..sound.len()).step_by(stride()) {
        let what = format!("{len} bytes of {}", sound.len());
        assert!(!try_file(&path, &sound[..len], &what), "open passes {what}");
    }
    let longer = [&sound[..], &[0]].concat();
    assert!(!try_file(&path, &longer, "one byte more"));
}
