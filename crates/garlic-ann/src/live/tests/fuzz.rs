//! The log reader with input that no writer wrote.

use std::io::Cursor;

use garlic_linalg::{random_stream, uniform_unit};

use super::super::log::{self, Fault, LOG_HEADER, Replay};
use super::super::record::{Batch, Change, Kind, RECORD_HEADER};

const DIM: usize = 3;
const GENERATION: u64 = 5;

/// Number of executions. `GARLIC_FUZZ` sets another number.
fn executions() -> u64 {
    let set = std::env::var("GARLIC_FUZZ").ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

fn batches() -> Vec<(Kind, Vec<u64>, Vec<f32>)> {
    let vectors = |n: usize| (0..n * DIM).map(|i| i as f32 / 3.0).collect();
    vec![
        (Kind::Add, vec![1, 2, 3], vectors(3)),
        (Kind::Remove, vec![2], vec![]),
        (Kind::Update, vec![1, 3], vectors(2)),
        (Kind::Add, vec![7], vectors(1)),
        (Kind::Remove, vec![7, 9, 11, 1 << 62], vec![]),
    ]
}

/// What a record adds to the attachment: every other one something.
fn block(number: usize) -> Option<&'static [u8]> {
    (number % 2 == 1).then_some(&b"rows of a table"[..number.min(15)])
}

/// A log, and where its records begin and the last one ends. Every record was synced before the next if `synced`.
fn sample(synced: bool) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = log::header(GENERATION, DIM).to_vec();
    let mut starts = vec![bytes.len()];
    for (number, (kind, ids, vectors)) in batches().iter().enumerate() {
        let batch = Batch {
            kind: *kind,
            ids,
            vectors,
            block: block(number),
        };
        let number = number as u64;
        let durable = if synced { number } else { 0 };
        let (head, vectors, padding) = batch.encode(GENERATION, number, durable);
        bytes.extend([&head, &*vectors, &padding].into_iter().flatten());
        assert_eq!(bytes.len() % 8, 0);
        starts.push(bytes.len());
    }
    (bytes, starts)
}

fn read(bytes: &[u8]) -> (Result<Replay, Fault>, Vec<Change>) {
    let mut changes = Vec::new();
    let mut input = Cursor::new(bytes);
    let result = log::read(&mut input, bytes.len() as u64, GENERATION, DIM, |change| {
        changes.push(change);
        Ok(())
    });
    (result, changes)
}

fn expected() -> Vec<Change> {
    let change = |(number, (kind, ids, vectors))| Change {
        kind,
        ids,
        vectors,
        block: block(number).map(Into::into),
    };
    batches().into_iter().enumerate().map(change).collect()
}

#[test]
fn a_log_is_read_as_it_was_written() {
    let (bytes, starts) = sample(true);
    let (result, changes) = read(&bytes);
    assert_eq!(changes, expected());
    let end = *starts.last().unwrap() as u64;
    assert_eq!(result.unwrap(), Replay { records: 5, end });
}

#[test]
fn a_log_cut_at_any_byte_keeps_its_whole_records() {
    let (bytes, starts) = sample(true);
    for length in 0..bytes.len() {
        let (result, changes) = read(&bytes[..length]);
        if length < LOG_HEADER {
            assert!(matches!(result, Err(Fault::Damaged { offset: 0, .. })));
            continue;
        }
        let whole = starts.iter().filter(|start| **start <= length).count() - 1;
        assert_eq!(result.unwrap().end, starts[whole] as u64, "{length}");
        assert_eq!(changes, expected()[..whole]);
    }
}

#[test]
fn every_changed_byte_is_an_error_or_the_torn_end() {
    let (bytes, starts) = sample(true);
    let last = starts[starts.len() - 2];
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            let (result, changes) = read(&changed);
            assert_eq!(changes, expected()[..changes.len()], "byte {at}");
            if at >= last {
                assert_eq!(result.unwrap().end, last as u64, "byte {at}");
                continue;
            }
            let offset = match result {
                Err(Fault::Damaged { offset, .. }) => offset as usize,
                other => panic!("byte {at}: {other:?}"),
            };
            if at >= LOG_HEADER {
                let record = starts.iter().filter(|start| **start <= at).count() - 1;
                assert_eq!(offset, starts[record], "byte {at}");
            }
        }
    }
}

#[test]
fn records_that_nobody_was_promised_may_be_torn_anywhere() {
    let (bytes, starts) = sample(false);
    for at in LOG_HEADER..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        let (result, changes) = read(&changed);
        let whole = starts.iter().filter(|start| **start <= at).count() - 1;
        assert_eq!(result.unwrap().end, starts[whole] as u64, "byte {at}");
        assert_eq!(changes, expected()[..whole]);
    }
}

#[test]
fn a_record_that_is_gone_or_there_twice_is_damage() {
    let (bytes, starts) = sample(true);
    let mut gone = bytes.clone();
    gone.drain(starts[1]..starts[2]);
    let mut twice = bytes.clone();
    twice.splice(
        starts[2]..starts[2],
        bytes[starts[1]..starts[2]].iter().copied(),
    );
    for (bytes, offset) in [(gone, starts[1]), (twice, starts[2])] {
        match read(&bytes).0 {
            Err(Fault::Damaged { offset: found, .. }) => assert_eq!(found as usize, offset),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_log_of_another_generation_or_dimension_is_refused() {
    let (bytes, _) = sample(true);
    for (generation, dim) in [(GENERATION + 1, DIM), (GENERATION, DIM + 1)] {
        let mut input = Cursor::new(&bytes);
        let length = bytes.len() as u64;
        let result = log::read(&mut input, length, generation, dim, |_| Ok(()));
        assert!(matches!(result, Err(Fault::Damaged { .. })));
    }
}

/// Repairs the checksums of the record at `start`.
fn seal(bytes: &mut [u8], start: usize) {
    let Some(record) = bytes.get_mut(start..) else {
        return;
    };
    let Some((head, rest)) = record.split_first_chunk_mut::<RECORD_HEADER>() else {
        return;
    };
    let length = u64::from_le_bytes(*head[24..].first_chunk().unwrap());
    let padded = length.checked_next_multiple_of(8);
    if let Some(payload) = padded.and_then(|n| rest.get(..usize::try_from(n).ok()?)) {
        head[32..36].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&GENERATION.to_le_bytes());
    hasher.update(&head[..36]);
    let checksum = hasher.finalize();
    head[36..].copy_from_slice(&checksum.to_le_bytes());
}

/// Includes lengths and counts of exabytes, which a reader must not allocate.
#[test]
fn no_bytes_make_the_reader_panic_or_take_more_memory_than_the_file_is_long() {
    let samples = [sample(true), sample(false)];
    let mut rng = random_stream(44, 0);
    let mut below = |n: usize| (uniform_unit(&mut rng) * n as f64) as usize;
    let words = [
        0,
        1,
        7,
        8,
        1 << 20,
        1 << 40,
        1 << 61,
        u64::MAX - 7,
        u64::MAX,
    ];
    let (mut read_some, mut refused) = (0, 0);
    for _ in 0..executions() {
        let (bytes, starts) = &samples[below(2)];
        let mut bytes = bytes.clone();
        for _ in 0..1 + below(4) {
            let at = below(bytes.len());
            match below(6) {
                0 => bytes[at] ^= 1 << below(8),
                1 => bytes[at] = below(256) as u8,
                2 => bytes.truncate(at.max(1)),
                3 => {
                    let from = below(bytes.len());
                    let to = bytes.len().min(from + below(200));
                    let piece = bytes[from..to].to_vec();
                    bytes.splice(at..at, piece);
                }
                4 => {
                    let at = at / 8 * 8;
                    let word = words[below(words.len())].to_le_bytes();
                    let to = bytes.len().min(at + 8);
                    bytes[at..to].copy_from_slice(&word[..to - at]);
                }
                _ => {
                    // A valid record with other content.
                    let start = starts[below(starts.len() - 1)];
                    let field = start + [4, 8, 16, 24, RECORD_HEADER, RECORD_HEADER + 8][below(6)];
                    let word = words[below(words.len())].to_le_bytes();
                    if let Some(place) = bytes.get_mut(field..field + 8) {
                        place.copy_from_slice(&word);
                    }
                    seal(&mut bytes, start);
                }
            }
        }
        let (result, changes) = read(&bytes);
        let held = |c: &Change| c.ids.len() * 8 + c.vectors.len() * 4;
        assert!(changes.iter().map(held).sum::<usize>() <= bytes.len());
        match result {
            Ok(found) => {
                assert!(found.end <= bytes.len() as u64);
                assert_eq!(found.records, changes.len() as u64);
                read_some += 1;
            }
            Err(Fault::Damaged { offset, .. }) => {
                assert!(offset <= bytes.len() as u64);
                refused += 1;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(read_some > 0 && refused > 0, "{read_some} {refused}");
}
