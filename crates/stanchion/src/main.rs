//! The binary: every command of Stanchion.
//!
//! A command that fails prints one line on standard error. Exit codes: 0 done, 1 failed, 2 usage error. `roles` has
//! its own; called as `pgroles`, the program is that command.

mod cli;
mod completion;
mod controllers;
mod crds;
mod doctor;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "for tests")]
mod fixed_answers;
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
mod ui;
mod yaml;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use rustls::crypto::aws_lc_rs;
use stanchion_fleet::cluster;
use stanchion_roles_cli as roles;

use crate::reconcile::CurrentCluster;

fn main() -> ExitCode {
    // One crypto provider for the whole process. This fails only if one is already installed, which is not the case.
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
