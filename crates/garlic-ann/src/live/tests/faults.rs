//! A device that fails at every operation of a workload in turn, once or permanently.

use super::super::{Live, Options};
use super::device::Keep;
use super::script::{Script, Step, create, look, open, small_log, state};
use super::sim::{IO_ERROR, NO_SPACE, Plan, SimDisk};
use garlic_core::Error;

/// Number of retries of a workload after one failure.
const PATIENCE: usize = 3;

/// The result of a run with a plan.
#[derive(Default)]
struct Run {
    /// Steps that were acknowledged, and whether the directory was.
    steps: usize,
    created: bool,
    errors: usize,
    broken: usize,
}

fn check_error(error: &Error, code: i32) {
    match error {
        Error::Io { source, .. } => assert_eq!(source.raw_os_error(), Some(code)),
        Error::Broken { message, .. } => assert!(message.contains("os error"), "{message}"),
        other => panic!("{other}"),
    }
}

/// Runs a script to its end or as long as the device permits, reopening the directory if required.
fn run(disk: &SimDisk, script: &Script, options: &Options, code: i32) -> Run {
    let mut run = Run::default();
    let mut live: Option<Live> = None;
    while run.steps < script.steps.len() && run.errors <= PATIENCE {
        let Some(open_handle) = &live else {
            let opened = if run.created {
                open(disk, options)
            } else {
                create(disk, options)
            };
            match opened {
                Ok(handle) => {
                    let found = state(&handle.snapshot());
                    if found != script.states[run.steps] {
                        // The failed batch was written nevertheless.
                        run.steps += 1;
                        assert_eq!(found, script.states[run.steps]);
                    }
                    live = Some(handle);
                    run.created = true;
                }
                Err(Error::Directory { message, .. }) if !run.created => {
                    // The first attempt failed after it had done everything.
                    assert!(message.contains("already"), "{message}");
                    run.created = true;
                }
                Err(error) => {
                    check_error(&error, code);
                    run.errors += 1;
                }
            }
            continue;
        };
        match script.run(open_handle, run.steps) {
            Ok(()) => {
                run.steps += 1;
                let found = state(&open_handle.snapshot());
                assert_eq!(found, script.states[run.steps]);
            }
            Err(error) => {
                check_error(&error, code);
                run.errors += 1;
                let seen = state(&open_handle.snapshot());
                assert_eq!(seen, script.states[run.steps], "nothing is published");
                if matches!(error, Error::Broken { .. }) {
                    run.broken += 1;
                    live = None;
                } else if matches!(script.steps[run.steps], Step::Checkpoint | Step::Compact) {
                    // The step is not retried, so what follows must be safe without it.
                    run.steps += 1;
                }
            }
        }
    }
    run
}

fn fail_everywhere(script: &Script, options: &Options, code: i32, forever: bool, half: bool) {
    let (mut failed, mut broken) = (0, 0);
    for at in 0.. {
        let disk = SimDisk::new();
        disk.plan(Plan::Fail {
            at,
            code,
            forever,
            half,
        });
        let run = run(&disk, script, options, code);
        if disk.count() <= at {
            assert_eq!(run.errors, 0);
            assert!(failed > 50 && broken > 0, "{failed} {broken}");
            return;
        }
        let about = format!("{at} {code} {forever} {half}");
        failed += usize::from(run.errors > 0);
        broken += run.broken;
        if !forever {
            assert_eq!(run.steps, script.steps.len(), "{about}");
        }
        disk.plan(Plan::Sound);
        for keep in [Keep::Nothing, Keep::Everything, Keep::Random(at as u64)] {
            let after = disk.after_cut(keep);
            let Some(found) = look(&after) else {
                assert!(!run.created, "{about} {keep:?}");
                continue;
            };
            let allowed = &script.states[run.steps..(run.steps + 2).min(script.states.len())];
            assert!(allowed.contains(&found), "{about} {keep:?}");
            let live = open(&after, options).unwrap();
            assert_eq!(state(&live.snapshot()), found, "{about} {keep:?}");
            assert_eq!(
                after.files().len(),
                4,
                "{about} {keep:?} {:?}",
                after.files()
            );
        }
    }
}

#[test]
fn a_device_that_fails_once_loses_nothing_that_was_acknowledged() {
    let script = Script::standard();
    fail_everywhere(&script, &Options::new(), NO_SPACE, false, true);
    fail_everywhere(&script, &small_log(), NO_SPACE, false, true);
    fail_everywhere(&script, &small_log(), IO_ERROR, false, false);
}

#[test]
fn a_device_that_fails_for_good_loses_nothing_that_was_acknowledged() {
    let script = Script::standard();
    fail_everywhere(&script, &small_log(), NO_SPACE, true, false);
    fail_everywhere(&script, &Options::new(), IO_ERROR, true, true);
}

#[test]
fn a_failed_sync_is_not_tried_again_and_searches_go_on() {
    let script = Script::standard();
    let disk = SimDisk::new();
    let live = create(&disk, &Options::new()).unwrap();
    // An add is a write and a sync.
    disk.plan(Plan::Fail {
        at: 1,
        code: IO_ERROR,
        forever: false,
        half: false,
    });
    let error = script.run(&live, 0).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let writes = disk.count();
    for number in 0..script.steps.len() {
        let error = script.run(&live, number).unwrap_err();
        assert!(matches!(error, Error::Broken { .. }), "{error}");
        assert!(error.to_string().contains("open the directory again"));
    }
    assert!(live.sync().is_err());
    assert_eq!(disk.count(), writes, "the device is left alone");
    let answer = live.search(&[1.0, 2.0, 3.0], &crate::Search::new(2).exact(true));
    assert_eq!(answer.unwrap().hits.len(), 2);
    assert_eq!(state(&live.snapshot()), script.states[0]);
}
