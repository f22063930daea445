//! Agents as the command line and a file name them together.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use clap::Parser;

use rejoin::turns::{Agent, AgentKind};

use super::AgentArgs;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    agents: AgentArgs,
}

/// A file that is gone when it is no longer used.
struct TempFile(PathBuf);

impl TempFile {
    fn new(text: &str) -> TempFile {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("rejoin-agents-{}-{count}.toml", std::process::id()));
        std::fs::write(&file, text).unwrap();
        TempFile(file)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Writes down an agent as `name seconds what`.
fn show(agent: &Agent) -> String {
    let kind = match &agent.kind {
        AgentKind::Native { url, headers } if headers.is_empty() => url.clone(),
        AgentKind::Native { url, headers } => format!("{url} {headers:?}"),
        AgentKind::Acp { command, folder: None } => format!("{command:?}"),
        AgentKind::Acp { command, folder: Some(folder) } => format!("{command:?} in {}", folder.display()),
    };
    format!("{} {} {kind}", agent.name, agent.silence_ms / 1000)
}

/// The agents that these options and this file name, or what is said about them. `FILE` stands for the file.
fn agents(options: &[&str], file: Option<&str>) -> Result<Vec<String>, String> {
    let file = file.map(TempFile::new);
    let path = file.as_ref().map(|file| file.0.display().to_string());
    let mut arguments = vec!["test"];
    arguments.extend(options);
    arguments.extend(path.iter().flat_map(|path| ["--config", path]));
    let command = Command::try_parse_from(arguments).map_err(|error| error.to_string())?;
    match (command.agents.agents(), path) {
        (Ok(agents), _) => Ok(agents.iter().map(|agent| show(agent)).collect()),
        (Err(fault), Some(path)) => Err(fault.to_string().replace(&path, "FILE")),
        (Err(fault), None) => Err(fault.to_string()),
    }
}

fn check(options: &[&str], file: Option<&str>, expected: &[&str]) {
    assert_eq!(
        agents(options, file),
        Ok(expected.iter().map(|line| (*line).to_owned()).collect()),
        "{options:?}"
    );
}

fn check_fault(options: &[&str], file: Option<&str>, expected: &str) {
    let fault = agents(options, file).unwrap_err();
    assert!(fault.contains(expected), "{options:?} {file:?}: {fault}");
}

const TWO: &str = r#"
default = "helper"

[agents.coder]
command = ["node", "agent.mjs"]
folder = "/srv/work"

[agents.helper]
url = "http://127.0.0.1:8901/"
headers = { Authorization = "Bearer x y", X-Team = "" }
timeout = 120
"#;

const CODER: &str = r#"coder 300 ["node", "agent.mjs"] in /srv/work"#;
const HELPER: &str = r#"helper 120 http://127.0.0.1:8901/ [("Authorization", "Bearer x y"), ("X-Team", "")]"#;

#[test]
fn the_command_line_names_agents() {
    let cases: [(&[&str], &[&str]); 9] = [
        (&[], &[]),
        (&["--agent", "http://h/a?b=c"], &["default 300 http://h/a?b=c"]),
        (&["--agent", "a=https://h", "--agent-timeout", "7"], &["a 7 https://h"]),
        (&["--agent", "acp:node agent.mjs --a=b"], &[r#"default 300 ["node", "agent.mjs", "--a=b"]"#]),
        (
            &["--agent", r#"c=acp:'/a b/c' "d \" $HOME" e\ f ''"#],
            &[r#"c 300 ["/a b/c", "d \" $HOME", "e f", ""]"#],
        ),
        (
            &["--agent", "http://h", "--agent", "a-b_c.9=acp:x"],
            &["default 300 http://h", r#"a-b_c.9 300 ["x"]"#],
        ),
        (&["--agent", "b=http://h", "--agent", "a=http://h"], &["b 300 http://h", "a 300 http://h"]),
        (&["--agent", "http=HTTP://h"], &["http 300 HTTP://h"]),
        (
            &["--agent-timeout", "18446744073709551615", "--agent", "http://h"],
            &["default 18446744073709551 http://h"],
        ),
    ];
    for (options, expected) in cases {
        check(options, None, expected);
    }
}

#[test]
fn a_file_names_agents() {
    check(&[], Some(TWO), &[HELPER, CODER]);
    check(&["--agent-timeout", "5"], Some(TWO), &[HELPER, &CODER.replace("300", "5")]);
    for (file, expected) in [
        ("", &[] as &[&str]),
        ("[agents]", &[]),
        ("[agents.b]\nurl = 'https://h'", &["b 300 https://h"]),
        ("agents.\"b.c\" = { command = ['x'] }", &[r#"b.c 300 ["x"]"#]),
        (
            "default = 'c'\n[agents]\nd.command = ['d']\na.command = ['a']\nc.command = ['c']\nb.command = ['b']",
            &[r#"c 300 ["c"]"#, r#"a 300 ["a"]"#, r#"b 300 ["b"]"#, r#"d 300 ["d"]"#],
        ),
    ] {
        check(&[], Some(file), expected);
    }
}

#[test]
fn the_command_line_stands_above_the_file() {
    check(&["--agent", "http://h"], Some(TWO), &["default 300 http://h", HELPER, CODER]);
    let undecided = TWO.replace("default = \"helper\"", "");
    check(&["--agent", "z=http://h"], Some(&undecided), &["z 300 http://h", CODER, HELPER]);
}

#[test]
fn a_bad_option_is_refused_with_a_reason() {
    let cases: [(&[&str], &str); 19] = [
        (&["--agent", ""], "an agent is http://…, https://… or acp:COMMAND"),
        (&["--agent", "helper"], "an agent is http://…, https://… or acp:COMMAND"),
        (&["--agent", "ftp://h"], "an agent is http://…, https://… or acp:COMMAND"),
        (&["--agent", "a=b=http://h"], "an agent is http://…, https://… or acp:COMMAND"),
        (&["--agent", "A=1 node agent.mjs"], "an agent is http://…, https://… or acp:COMMAND"),
        (&["--agent", "=http://h"], "'' can't be an agent's name: use letters"),
        (&["--agent", "a b=http://h"], "'a b' can't be an agent's name: use letters"),
        (&["--agent", "é=acp:x"], "'é' can't be an agent's name: use letters"),
        (&["--agent", "a=http://"], "the URL needs a host"),
        (&["--agent", "http://h:x"], "the URL's port must be a number"),
        (&["--agent", "https://u:p@h"], "put an Authorization header into the file"),
        (&["--agent", "acp:"], "the command is empty"),
        (&["--agent", "a=acp: "], "the command is empty"),
        (&["--agent", "acp:''"], "the command is empty"),
        (&["--agent", "acp:node 'a"], "a quote in the command is not closed"),
        (&["--agent", "acp:a", "--agent", "acp:b"], "--agent number 2 has no name"),
        (
            &["--agent", "a=acp:a", "--agent", "b=acp:b", "--agent", "http://c"],
            "--agent number 3 has no name",
        ),
        (&["--agent", "acp:a", "--agent", "default=acp:b"], "two agents are called 'default'"),
        (&["--agent-timeout", "0"], "--agent-timeout"),
    ];
    for (options, expected) in cases {
        check_fault(options, None, expected);
    }
    check_fault(&["--config", "/no/such/file.toml"], None, "can't read /no/such/file.toml: ");
}

#[test]
fn a_bad_file_is_refused_with_a_reason() {
    for (file, expected) in [
        ("\n[agents.a]\nurl = ", "FILE, line 3: "),
        ("\n\nagent = 1", "FILE, line 3: unknown field `agent`, expected `default` or `agents`"),
        ("[agents.a]\nurl = 'http://h'\nhedaers = {}", "FILE, line 3: unknown field `hedaers`"),
        ("[agents.a]\nurl = 'http://h'\ntimeout = 0", "FILE, line 3: invalid value: integer `0`"),
        ("[agents.a]\nurl = 'http://h'\ntimeout = '9'", "FILE, line 3: invalid type: string \"9\""),
        ("[agents.a]\ncommand = 'node'", "FILE, line 2: invalid type: string \"node\", expected a sequence"),
        ("[agents.a]\nurl = 'http://h'\n[agents.a]\nurl = 'http://h'", "FILE, line 3: "),
        ("[agents.a]", "FILE, agent 'a': it has neither a url nor a command: add"),
        ("[agents.a]\nurl = 'http://h'\ncommand = ['x']", "FILE, agent 'a': it has both a url and a command"),
        ("[agents.a]\nurl = 'http://h'\nfolder = '/'", "FILE, agent 'a': folder is only for"),
        ("[agents.a]\ncommand = ['x']\nheaders = {}", "FILE, agent 'a': headers are only for"),
        ("[agents.a]\nurl = 'unix:/x'", "FILE, agent 'a': the URL must begin with http:// or https://"),
        ("[agents.a]\nurl = 'https:///x'", "FILE, agent 'a': the URL needs a host"),
        ("[agents.a]\ncommand = []", "FILE, agent 'a': the command is empty"),
        ("[agents.a]\ncommand = ['', 'x']", "FILE, agent 'a': the command is empty"),
        ("[agents.'a b']\nurl = 'http://h'", "FILE, agent 'a b': 'a b' can't be an agent's name"),
        (
            "[agents.a]\nurl = 'http://h'\nheaders = { 'A b' = 'c' }",
            "agent 'a': 'A b' can't be a header's name",
        ),
        (
            "[agents.a]\nurl = 'http://h'\nheaders = { A = \"b\\nC: d\" }",
            "the header A may only hold printable",
        ),
        ("default = 'b'\n[agents.a]\nurl = 'http://h'", "FILE: the default agent 'b' is not in the file"),
        (
            "[agents.a]\nurl = 'http://h'\n[agents.b]\nurl = 'http://h'",
            "FILE has several agents: say which one",
        ),
    ] {
        check_fault(&[], Some(file), expected);
    }
    check_fault(&["--agent", "coder=acp:x"], Some(TWO), "two agents are called 'coder'");
}

#[test]
fn no_secret_is_shown_with_a_line_that_is_wrong() {
    let file = "[agents.a]\nurl = 'http://h'\nheaders = { Authorization = 'Bearer s3cret' oops }";
    let fault = agents(&[], Some(file)).unwrap_err();
    assert!(fault.starts_with("FILE, line 3: ") && !fault.contains("s3cret"), "{fault}");
}
