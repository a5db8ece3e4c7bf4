//! The binary: every command of Stanchion, and nothing that a library could hold.
//!
//! A command that fails says so in one line on standard error. Exit codes: 0 done, 1 failed, 2 used wrongly; `roles`
//! has its own, and called by the name `pgroles` the program is that command.

mod cli;
mod cluster;
mod completion;
mod controllers;
mod crds;
mod doctor;
mod generate;
mod man;
mod manifest;
mod output;
mod rbac;
mod reconcile;
mod report;
mod run;
#[cfg(feature = "sandbox")]
mod sandbox;
mod status;
mod yaml;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use rustls::crypto::aws_lc_rs;
use stanchion_roles::cli as roles;

use crate::reconcile::CurrentCluster;

fn main() -> ExitCode {
    // One provider for the whole process. It fails only where one is installed already, and none is.
    let _ = aws_lc_rs::default_provider().install_default();
    if std::env::args_os()
        .next()
        .is_some_and(|program| roles::is_pgroles(Path::new(&program)))
    {
        return roles::main_as_pgroles(std::env::args_os(), &CurrentCluster);
    }
    let ended = match cli::parse() {
        Ok(command) => command.run(),
        Err(usage) => Err(usage),
    };
    match ended {
        Ok(code) => code,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "error: {failure}");
            ExitCode::from(failure.code())
        }
    }
}
