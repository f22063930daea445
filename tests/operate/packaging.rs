//! What is installed with the program: that systemd takes the unit, and that the program takes the options which the unit
//! and the image start it with.

use std::path::Path;
use std::process::Command;

const UNIT: &str = "deploy/rejoin.service";

/// The unit's or the image's words behind `serve` are options that this program knows. The doctor takes the same ones,
/// and ends.
fn check_options(words: &[&str]) {
    let at = words.iter().position(|word| *word == "serve").expect("it serves");
    let options = words[at + 1..].iter().filter(|word| !word.starts_with('$'));
    let output =
        Command::new(env!("CARGO_BIN_EXE_rejoin")).args(["doctor", "--json"]).args(options).output().unwrap();
    // A wrong option is exit code 2; what the doctor finds on this machine does not matter here.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{words:?}: {output:?}");
    assert!(output.stdout.starts_with(b"{\"ok\":"), "{output:?}");
}

#[test]
fn systemd_takes_the_unit() {
    let unit = std::fs::read_to_string(UNIT).unwrap();
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    check_options(&start.split_whitespace().collect::<Vec<_>>());

    let dir = std::env::temp_dir().join(format!("rejoin-unit-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let verify = |unit: String| {
        let file = dir.join("rejoin.service");
        std::fs::write(&file, unit).unwrap();
        let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output();
        let output = output.expect("tests/run.sh installs it");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // It looks for the program, which is here and not in /usr/local.
    let program = Path::new(env!("CARGO_BIN_EXE_rejoin")).to_str().unwrap();
    let unit = unit.replace("/usr/local/bin/rejoin", program);
    assert_eq!(verify(unit.clone()), (true, String::new()));
    let (_, complaint) = verify(unit.replace("ProtectSystem=strict", "ProtectSystem=perhaps"));
    assert!(complaint.contains("Failed to parse protect system value"), "it does look: {complaint}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn the_image_starts_the_program_with_options_that_it_knows() {
    let file = std::fs::read_to_string("Dockerfile").unwrap();
    let command = file.lines().find_map(|line| line.strip_prefix("CMD ")).unwrap();
    let words: Vec<String> = serde_json::from_str(command).unwrap();
    check_options(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(file.contains("\nENTRYPOINT [\"rejoin\"]\n") && file.contains("\nUSER rejoin\n"));
}

#[test]
fn the_image_is_built_from_all_that_the_build_needs() {
    let file = std::fs::read_to_string("Dockerfile").unwrap();
    let copied: Vec<&str> = file.lines().filter_map(|line| line.strip_prefix("COPY ")).collect();
    let copied: Vec<&str> = copied
        .iter()
        .filter(|line| !line.starts_with("--from"))
        .flat_map(|line| line.rsplit_once(' ').unwrap().0.split(' '))
        .collect();
    let sent = std::fs::read_to_string(".dockerignore").unwrap();
    let sent: Vec<&str> = sent.lines().filter_map(|line| line.strip_prefix('!')).collect();
    for path in &copied {
        assert!(Path::new(path).exists(), "{path}");
        assert!(
            sent.iter().any(|sent| sent == path || sent.starts_with(&format!("{path}/"))),
            "{path} is not sent"
        );
    }
    // What cargo compiles, and the folders out of which files are embedded.
    for needed in ["Cargo.toml", "Cargo.lock", "src", "benches", "clients"] {
        assert!(copied.contains(&needed), "{needed}");
    }
}
