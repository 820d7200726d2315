//! Vectors of a file are loaded without copies: a process of its own, whose peak of memory nothing else raises.

#![cfg(target_os = "linux")]

use garlic_core::Cancel;
use garlic_core::vector_file::VectorFile;
use garlic_core::vectors::StoredType;

/// Largest resident memory of this process so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_whitespace().nth(1);
    1024 * number.unwrap().parse::<u64>().unwrap()
}

#[test]
fn loading_takes_the_memory_of_the_vectors_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vectors");
    let bytes = 64 << 20;
    std::fs::File::create(&path)
        .and_then(|file| file.set_len(bytes))
        .unwrap();
    let file = VectorFile::open(&path, StoredType::F32, 128).unwrap();
    let before = peak();
    let loaded = file.load(&Cancel::default()).unwrap();
    assert_eq!(loaded.bytes(), bytes);
    let grown = peak() - before;
    assert!(grown < bytes + bytes / 4, "it took {grown}");
}
