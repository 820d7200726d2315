//! Marks against a set.

use std::collections::BTreeSet;

use crate::Marks;

#[test]
fn numbers_are_new_once() {
    let (mut marks, mut seen) = (Marks::default(), BTreeSet::new());
    let mut state = 1u32;
    for end in [1u32, 63, 64, 65, 1000] {
        marks.resize(end);
        seen.clear();
        for count in [0usize, 1, 7, 32, 200] {
            let next = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                match state >> 28 {
                    0 => u32::MAX - (state % 3),
                    _ => (state >> 8) % (end + 3),
                }
            };
            let numbers: Vec<u32> = (0..count).map(next).collect();
            let mut new = vec![77];
            marks.mark_new(&numbers, &mut new);
            let fresh = numbers.iter().filter(|n| **n < end && seen.insert(**n));
            let expected: Vec<u32> = [77].iter().chain(fresh).copied().collect();
            assert_eq!(new, expected, "{end}");
        }
        let all: Vec<u32> = seen.iter().copied().collect();
        marks.clear_near(&all);
        let mut new = Vec::new();
        marks.mark_new(&[end], &mut new);
        assert!(new.is_empty(), "the end is never new");
        marks.mark_new(&all, &mut new);
        assert_eq!(new, all);
    }
}

#[test]
fn another_end_clears_and_the_same_does_not() {
    let mut marks = Marks::default();
    let mut new = Vec::new();
    marks.mark_new(&[0], &mut new);
    assert!(new.is_empty(), "there are no numbers yet");
    marks.resize(10);
    marks.mark_new(&[3], &mut new);
    marks.resize(10);
    marks.mark_new(&[3], &mut new);
    marks.resize(11);
    marks.mark_new(&[3, 10], &mut new);
    assert_eq!(new, [3, 3, 10]);
    marks.clear_near(&[u32::MAX, 3]);
    marks.mark_new(&[10], &mut new);
    assert_eq!(new, [3, 3, 10, 10]);
}
