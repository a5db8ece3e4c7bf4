//! The binary: every command of Stanchion, and nothing that a library could hold.
//!
//! A command that fails says so in one line on standard error. Exit codes: 0 done, 1 failed, 2 used wrongly.

mod cli;
mod controllers;
mod crds;
mod generate;
mod output;
mod rbac;
mod run;
mod yaml;

use std::io::Write as _;
use std::process::ExitCode;

use rustls::crypto::aws_lc_rs;

fn main() -> ExitCode {
    // One provider for the whole process. It fails only where one is installed already, and none is.
    let _ = aws_lc_rs::default_provider().install_default();
    let ended = match cli::parse() {
        Ok(command) => command.run(),
        Err(usage) => Err(usage),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "error: {failure}");
            ExitCode::from(failure.code())
        }
    }
}
