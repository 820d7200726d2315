//! `garlic completions` and `garlic man`: every command is in them.

use crate::common::{Lab, command, finish};

const COMMANDS: [&str; 18] = [
    "build",
    "search",
    "serve",
    "eval",
    "add",
    "upsert",
    "remove",
    "compact",
    "tune",
    "inspect",
    "verify",
    "convert",
    "synth",
    "demo",
    "datasets",
    "config",
    "completions",
    "man",
];

#[test]
fn every_shell_completes_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = finish(&mut command(["completions", shell]))
            .expect(0)
            .stdout;
        for name in COMMANDS.iter().copied().chain(["recall", "filter-ids"]) {
            assert!(script.contains(name), "no `{name}` for {shell}");
        }
    }
    finish(&mut command(["completions", "tcsh"])).expect_error(2, &["tcsh", "bash"]);
    finish(&mut command(["completions"])).expect(2);
}

#[cfg(unix)]
#[test]
fn bash_takes_its_script() {
    let lab = Lab::new();
    lab.write(
        "script",
        &finish(&mut command(["completions", "bash"])).stdout,
    );
    let mut bash = std::process::Command::new("bash");
    let line = "source ./script && COMP_WORDS=(garlic ver) COMP_CWORD=1 && _garlic garlic ver garlic && echo ${COMPREPLY[@]}";
    bash.args(["-c", line]).current_dir(lab.path("."));
    // A system without bash has nothing to test here.
    if let Ok(output) = bash.output() {
        assert_eq!(String::from_utf8_lossy(&output.stdout), "verify\n");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let lab = Lab::new();
    let run = || lab.run(&["man", "--out", "share/man1"]).expect(0).stdout;
    let printed = run();
    assert_eq!(printed.lines().count(), 1 + COMMANDS.len());
    let read = |name: &str| std::fs::read_to_string(lab.path(&format!("share/man1/{name}.1")));
    let page = read("garlic").unwrap();
    for name in COMMANDS {
        assert!(page.contains(name), "no `{name}` in\n{page}");
        let own = read(&format!("garlic-{name}")).unwrap();
        assert!(
            own.contains(".TH garlic\\-") || own.contains(".TH garlic-"),
            "{own}"
        );
        assert!(
            own.contains("Examples:") && own.contains("SYNOPSIS"),
            "{own}"
        );
        assert!(printed.contains(&format!("garlic-{name}.1")));
    }
    assert!(read("garlic-search").unwrap().contains("recall"));
    // Again over what is there.
    assert_eq!(run(), printed);
    lab.write("file", "");
    lab.run(&["man", "--out", "file/man1"])
        .expect_error(1, &["file/man1"]);
    lab.run(&["man"]).expect(2);
}
