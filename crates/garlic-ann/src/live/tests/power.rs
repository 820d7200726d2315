//! A power cut during every operation of a workload. The device keeps any part of the unsynced data.

use std::collections::HashMap;

use super::super::{Options, SyncPolicy};
use super::device::Keep;
use super::script::{IDS, Script, State, Step, create, look, open, small_log, state, vector};
use super::sim::{Plan, SimDisk};
use garlic_linalg::Rows;

/// Number of random cuts per operation. `GARLIC_CUTS` sets another number and tears records at every byte.
fn random_cuts() -> Option<u64> {
    std::env::var("GARLIC_CUTS").ok()?.parse().ok()
}

/// All useful variants of what a cut may leave of the unsynced data.
fn leftovers(disk: &SimDisk, seed: u64) -> Vec<Keep> {
    let mut all = vec![Keep::Nothing, Keep::Everything, Keep::Contents];
    let unsynced = disk.unsynced();
    let tears = if random_cuts().is_some() { 512 } else { 16 };
    all.extend((0..unsynced).step_by(1 + unsynced / tears).map(Keep::Torn));
    let random = random_cuts().unwrap_or(4);
    all.extend((0..random).map(|i| Keep::Random(seed * random + i)));
    all
}

/// Results of recoveries, by disk state.
#[derive(Default)]
struct Known(HashMap<u64, Option<State>>);

impl Known {
    fn look(&mut self, disk: &SimDisk) -> Option<State> {
        let found = self.0.entry(disk.fingerprint());
        found.or_insert_with(|| look(disk)).clone()
    }
}

/// Runs a script until the power is cut. Returns the number of acknowledged states, including the first.
fn run(disk: &SimDisk, script: &Script, options: &Options) -> usize {
    let Ok(live) = create(disk, options) else {
        return 0;
    };
    for number in 0..script.steps.len() {
        if script.run(&live, number).is_err() {
            assert!(disk.is_off(), "step {number}");
            assert_eq!(state(&live.snapshot()), script.states[number]);
            return number + 1;
        }
        assert_eq!(state(&live.snapshot()), script.states[number + 1]);
    }
    script.states.len()
}

/// Opens a disk after a cut in every way and checks that the results agree. Returns the result.
fn recover(disk: &SimDisk, known: &mut Known) -> Option<State> {
    let found = known.look(disk)?;
    let first = disk.copy();
    let live = open(&first, &small_log()).unwrap();
    assert_eq!(
        state(&live.snapshot()),
        found,
        "a writer finds what a reader finds"
    );
    let after = first.after_cut(Keep::Nothing);
    assert_eq!(
        known.look(&after).as_ref(),
        Some(&found),
        "opening makes durable what it finds"
    );
    drop(live);
    let left = first.files();
    assert_eq!(left.len(), 4, "leftovers are cleaned: {left:?}");

    let live = open(&first, &small_log()).unwrap();
    assert_eq!(
        state(&live.snapshot()),
        found,
        "a second recovery finds the same"
    );
    let id = IDS - 1;
    live.add(Rows::new(&vector(id, 99), 3).unwrap(), &[id])
        .unwrap();
    let mut next = found.clone();
    next.insert(id, vector(id, 99));
    let after = first.after_cut(Keep::Nothing);
    assert_eq!(
        known.look(&after),
        Some(next),
        "a batch after a recovery is durable"
    );
    Some(found)
}

/// Cuts the power during every operation of a recovery as well.
fn cut_recovery(disk: &SimDisk, found: Option<&State>, known: &mut Known) {
    for at in 0.. {
        let again = disk.copy();
        again.plan(Plan::Cut(at));
        let opened = open(&again, &small_log()).is_ok();
        if !again.is_off() {
            assert_eq!(opened, found.is_some());
            return;
        }
        let seed = at as u64;
        for keep in [Keep::Nothing, Keep::Everything, Keep::Random(seed)] {
            let after = again.after_cut(keep);
            assert_eq!(
                known.look(&after).as_ref(),
                found,
                "cut at {at} of a recovery, {keep:?}"
            );
        }
    }
}

fn cut_everywhere(script: &Script, options: &Options, promised: impl Fn(usize) -> usize) {
    let mut known = Known::default();
    let mut recovered: HashMap<u64, Option<State>> = HashMap::new();
    for at in 0.. {
        let disk = SimDisk::new();
        disk.plan(Plan::Cut(at));
        let acknowledged = run(&disk, script, options);
        if !disk.is_off() {
            assert_eq!(acknowledged, script.states.len());
            assert!(at > 60, "the script shrank to {at} operations");
            return;
        }
        for keep in leftovers(&disk, at as u64) {
            let after = disk.after_cut(keep);
            let found = recovered.entry(after.fingerprint()).or_insert_with(|| {
                let found = recover(&after, &mut known);
                if !matches!(keep, Keep::Torn(_)) {
                    cut_recovery(&after, found.as_ref(), &mut known);
                }
                found
            });
            // The result is the last promised state or a later one up to the state being written, never a part.
            let from = promised(acknowledged);
            let fits = match found {
                None => from == 0,
                Some(found) => {
                    let to = acknowledged.min(script.states.len() - 1);
                    script.states[from.max(1) - 1..=to].contains(found)
                }
            };
            assert!(
                fits,
                "cut at {at} with {acknowledged} acknowledged, {keep:?}: {found:?}"
            );
        }
    }
}

/// After a kill, a writer syncs everything it builds upon before it acknowledges a batch.
#[test]
fn what_is_acknowledged_after_a_kill_survives_a_power_cut() {
    let script = Script::standard();
    let mut known = Known::default();
    for at in 0.. {
        let disk = SimDisk::new();
        disk.plan(Plan::Cut(at));
        let acknowledged = run(&disk, &script, &small_log());
        if !disk.is_off() {
            return;
        }
        let Some(found) = known.look(&disk.after_kill()) else {
            assert_eq!(acknowledged, 0, "killed at {at}");
            continue;
        };
        let to = acknowledged.min(script.states.len() - 1);
        let allowed = &script.states[acknowledged.max(1) - 1..=to];
        assert!(allowed.contains(&found), "killed at {at}");

        let again = disk.after_kill();
        let live = open(&again, &Options::new()).unwrap();
        live.remove(&[0]).unwrap();
        let mut next = found.clone();
        next.remove(&0);
        for keep in [Keep::Nothing, Keep::Everything, Keep::Random(at as u64)] {
            let after = again.after_cut(keep);
            assert_eq!(known.look(&after).as_ref(), Some(&next), "{at} {keep:?}");
        }
        // Before the first acknowledgement, a power cut may lose what was only in the cache, but no promised state.
        for cut in 0.. {
            let again = disk.after_kill();
            again.plan(Plan::Cut(cut));
            drop(open(&again, &small_log()));
            if !again.is_off() {
                break;
            }
            for seed in 0..random_cuts().unwrap_or(4) {
                let after = again.after_cut(Keep::Random(seed));
                match known.look(&after) {
                    None => assert_eq!(acknowledged, 0, "killed at {at}, cut at {cut}"),
                    Some(found) => assert!(allowed.contains(&found), "{at} {cut} {seed}"),
                }
            }
        }
    }
}

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    cut_everywhere(&Script::standard(), &Options::new(), |acknowledged| {
        acknowledged
    });
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_when_checkpoints_come_by_themselves() {
    let script = Script::new(vec![
        Step::Add(vec![20, 21]),
        Step::Add(vec![22, 23, 24, 25]),
        Step::Update(vec![20, 5, 6]),
        Step::Add(vec![40]),
        Step::Remove(vec![22, 23]),
        Step::Update(vec![40, 24]),
        Step::Add(vec![41, 42]),
    ]);
    cut_everywhere(&script, &small_log(), |acknowledged| acknowledged);
}

#[test]
fn without_syncs_a_power_cut_leaves_a_state_since_the_last_checkpoint() {
    let script = Script::standard();
    let checkpoint = |step: &Step| matches!(step, Step::Checkpoint | Step::Compact);
    // States that a finished checkpoint or the creation contains, counted like `acknowledged`.
    let promised = |acknowledged: usize| {
        let steps = &script.steps[..acknowledged.saturating_sub(1)];
        match steps.iter().rposition(checkpoint) {
            Some(number) => number + 2,
            None => acknowledged.min(1),
        }
    };
    cut_everywhere(&script, &Options::new().sync(SyncPolicy::Never), promised);
}

#[test]
fn sync_makes_durable_what_was_not() {
    let script = Script::new(vec![Step::Add(vec![20, 21]), Step::Remove(vec![1])]);
    let disk = SimDisk::new();
    let live = create(&disk, &Options::new().sync(SyncPolicy::Never)).unwrap();
    script.run(&live, 0).unwrap();
    script.run(&live, 1).unwrap();
    let lost = disk.after_cut(Keep::Nothing);
    assert_eq!(look(&lost).as_ref(), Some(&script.states[0]));
    live.sync().unwrap();
    let kept = disk.after_cut(Keep::Nothing);
    assert_eq!(look(&kept).as_ref(), Some(&script.states[2]));
}
