//! What is to be measured.

use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Args {
    /// The server's binary.
    pub rejoin: String,
    /// How long one measurement takes.
    pub time: Duration,
    /// Measurements of each figure.
    pub rounds: usize,
    /// Scenarios whose name contains this.
    pub only: String,
    /// The processor that servers are pinned to.
    pub server_core: String,
}

const USAGE: &str =
    "usage: end_to_end --rejoin BINARY [--seconds S] [--rounds N] [--only NAME] [--server-core N]";

impl Args {
    pub fn parse(words: &[String]) -> Result<Args, String> {
        let mut args = Args {
            rejoin: String::new(),
            time: Duration::from_secs(3),
            rounds: 3,
            only: String::new(),
            server_core: "0".to_owned(),
        };
        for pair in words.chunks(2) {
            let [name, value] = pair else { return Err(format!("{} needs a value\n{USAGE}", pair[0])) };
            let number = || value.parse::<f64>().map_err(|_| format!("{name} must be a number\n{USAGE}"));
            match name.as_str() {
                "--rejoin" => args.rejoin.clone_from(value),
                "--seconds" => args.time = Duration::from_secs_f64(number()?),
                "--rounds" => args.rounds = number()? as usize,
                "--only" => args.only.clone_from(value),
                "--server-core" => args.server_core.clone_from(value),
                _ => return Err(format!("{name} is unknown\n{USAGE}")),
            }
        }
        if args.rejoin.is_empty() { Err(USAGE.to_owned()) } else { Ok(args) }
    }
}
