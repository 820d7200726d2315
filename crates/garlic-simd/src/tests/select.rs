//! The smallest estimates: against a full sort.

use super::*;

/// Lists with the properties that a search for the threshold may stumble over.
fn lists() -> impl Strategy<Value = Vec<Estimate>> {
    let estimate = prop_oneof![
        4 => 0.0f32..1000.0,
        1 => Just(7.5f32),
        1 => Just(0.0f32),
        1 => (0.0f32..1.0).prop_map(|x| 1e30 * x),
        1 => (0.0f32..1.0).prop_map(|x| 1e-42 * x),
        1 => Just(f32::INFINITY),
    ];
    let kinds = [0.0f32..1000.0, 500.0..500.001, 0.0..1e-40];
    let even = (0..kinds.len())
        .prop_flat_map(move |kind| proptest::collection::vec(kinds[kind].clone(), 1..300));
    let same = (1usize..100).prop_map(|n| vec![3.25f32; n]);
    prop_oneof![proptest::collection::vec(estimate, 1..300), even, same].prop_map(|estimates| {
        let numbered = estimates.into_iter().enumerate();
        // Numbers that come in no order.
        let number = |i: usize| (i as u32).wrapping_mul(0x9e37_79b1);
        numbered
            .map(|(i, estimate)| Estimate {
                at: number(i),
                estimate,
            })
            .collect()
    })
}

fn bits(list: &[Estimate]) -> Vec<u64> {
    list.iter().map(Estimate::key).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_smallest_stay_in_their_order(list in lists(), share in 0.0f64..1.0) {
        let keep = 1 + (share * (list.len() - 1) as f64) as usize;
        let mut sorted = bits(&list);
        sorted.sort_unstable();
        let last = sorted[keep - 1];
        let expected: Vec<u64> = bits(&list).into_iter().filter(|key| *key <= last).collect();
        for level in levels() {
            let mut kept = list.clone();
            let largest = dispatch!(level, keep_smallest(&mut kept, keep));
            prop_assert_eq!(bits(&kept), expected.clone(), "{:?}", level);
            prop_assert_eq!(largest.key(), last, "{:?}", level);
        }
    }
}

/// Estimates of a file that nobody has checked.
#[test]
fn what_is_no_number_does_no_harm() {
    let no_numbers = [
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        -1.0,
        2.0,
    ];
    for level in levels() {
        for keep in 1..=30 {
            let numbered = (0..30).zip(no_numbers.into_iter().cycle());
            let mut list: Vec<_> = numbered
                .map(|(at, estimate)| Estimate { at, estimate })
                .collect();
            dispatch!(level, keep_smallest(&mut list, keep));
            assert!(list.len() <= keep, "{level:?}");
        }
    }
}

#[test]
#[should_panic(expected = "more than all")]
fn more_than_there_are_cannot_be_kept() {
    keep_smallest(&mut Vec::new(), 1);
}
