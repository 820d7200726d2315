//! A system that starts no more threads: that is what is told, and no file is taken for damaged.
//!
//! The test starts its own program again with stacks that are larger than the address space, so that no thread of it
//! can be started.

mod testdata;

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

use garlic_ann::{Error, Index, Live, Rows, Search};
use testdata::lattice;

const PLACE: &str = "GARLIC_THREADS_PLACE";
const DIM: usize = 4;

/// What the program does that cannot start threads; nothing in an ordinary run.
#[test]
fn without_threads() {
    let Ok(place) = env::var(PLACE) else {
        return;
    };
    let place = Path::new(&place);
    let started = std::thread::Builder::new().spawn(|| ());
    assert!(started.is_err(), "the limit does not work");
    let logged = place.join("logged");
    let files = || {
        let names = fs::read_dir(&logged).unwrap().map(|f| f.unwrap().path());
        let mut files: Vec<_> = names.map(|f| (f.clone(), fs::read(f).unwrap())).collect();
        files.sort();
        files
    };
    let before = files();
    for result in [Live::open(&logged), Live::open_read_only(&logged)] {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Threads { .. }), "{error}");
        assert!(error.to_string().contains("could not start"), "{error}");
    }
    assert!(files() == before, "nothing is changed");
    let data = lattice(60, DIM);
    let error = Index::builder().build(Rows::new(&data, DIM).unwrap());
    assert!(matches!(error, Err(Error::Threads { .. })));

    // Without a log there is nothing to do again.
    let live = Live::open(place.join("plain")).unwrap();
    let answer = live.search(&data[..DIM], &Search::new(1).exact(true));
    assert_eq!(answer.unwrap().hits[0].distance, 0.0);
    let added = live.add(Rows::new(&data[..DIM], DIM).unwrap(), &[1000]);
    assert!(matches!(added, Err(Error::Threads { .. })));
    live.checkpoint().unwrap();
    writeln!(io::stdout(), "all as expected").unwrap();
}

#[test]
fn a_system_without_threads_is_not_a_damaged_log() {
    let place = tempfile::tempdir().unwrap();
    let data = lattice(60, DIM);
    for name in ["logged", "plain"] {
        let index = Index::builder().build(Rows::new(&data, DIM).unwrap());
        let live = Live::create(place.path().join(name), index.unwrap()).unwrap();
        if name == "logged" {
            let rows = Rows::new(&data[..2 * DIM], DIM).unwrap();
            live.add(rows, &[1000, 1001]).unwrap();
        }
    }
    let ran = Command::new(env::current_exe().unwrap())
        .args([
            "without_threads",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(PLACE, place.path())
        .env("RUST_MIN_STACK", (1u64 << 47).to_string())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.success() && out.contains("all as expected"),
        "{out}{error}"
    );
    assert_eq!(
        Live::open(place.path().join("logged"))
            .unwrap()
            .snapshot()
            .len(),
        62
    );
}
