//! `rejoin completions` and `rejoin man`: made from the same definition as the command line itself.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Directory to write a page for each subcommand to; it is made if there is none
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints a completion script.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> ExitCode {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    print(&script)
}

/// Prints the manual page of the program, or writes all pages to a directory.
pub(crate) fn man(args: &ManArgs, command: Command) -> ExitCode {
    let Some(dir) = &args.out else {
        let mut page = Vec::new();
        // A vector takes everything.
        let _ = clap_mangen::Man::new(command).render(&mut page);
        return print(&page);
    };
    match std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => super::fail(&format!("the pages can't be written to {}: {error}", dir.display())),
    }
}

/// A reader that has had enough is no reason to complain.
fn print(bytes: &[u8]) -> ExitCode {
    let mut out = io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
    ExitCode::SUCCESS
}
