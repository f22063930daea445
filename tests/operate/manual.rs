//! Completions and manual pages: that they are made, and that the tools which read them accept them.

use std::process::{Command, Stdio};

fn rejoin(args: &[&str]) -> (bool, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_rejoin")).args(args).stderr(Stdio::null()).output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn each_shell_gets_a_script_that_knows_the_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (done, script) = rejoin(&["completions", shell]);
        assert!(done && script.contains("window-events") && script.contains("observe"), "{shell}");
    }
    assert!(!rejoin(&["completions", "tcsh"]).0);
}

#[test]
fn bash_completes_with_its_script() {
    let script = r#"source <(rejoin completions bash)
        COMP_WORDS=(rejoin serve --window-) COMP_CWORD=2 COMP_LINE="rejoin serve --window-" COMP_POINT=22
        _rejoin rejoin --window- serve; echo "${COMPREPLY[@]}""#;
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_rejoin"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash").args(["-c", script]).env("PATH", path).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "--window-events", "{output:?}");
}

#[test]
fn there_is_a_page_for_the_program_and_for_each_subcommand() {
    let (done, page) = rejoin(&["man"]);
    assert!(done && page.contains(".TH rejoin 1") && page.contains("serve"), "{page}");
    let dir = std::env::temp_dir().join(format!("rejoin-man-{}", std::process::id()));
    let out = dir.join("share/man1");
    assert!(rejoin(&["man", "--out", out.to_str().unwrap()]).0);
    let mut pages: Vec<String> = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    for expected in ["rejoin.1", "rejoin-serve.1", "rejoin-push.1", "rejoin-man.1"] {
        assert!(pages.iter().any(|page| page == expected), "{pages:?}");
    }
    assert!(!pages.iter().any(|page| page.contains("demo-agent")), "hidden: {pages:?}");
    let serve = std::fs::read_to_string(out.join("rejoin-serve.1")).unwrap();
    assert!(serve.contains("window\\-events"), "{serve}");
    std::fs::remove_dir_all(dir).unwrap();
}
