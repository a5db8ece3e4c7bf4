//! Semantic checks of a manifest.
//!
//! The checks find everything that PostgreSQL would refuse, or that could never converge, before any connection, and
//! report all of it at once. Findings that pgroles accepts are [`Severity::Strict`].

mod contradictions;
mod defaults;
mod grants;
mod members;
mod names;
mod roles;
mod schemas;

use super::diagnostic::{Diagnostic, Path, Severity};
use super::suggest::did_you_mean;
use super::types::Manifest;
use names::Names;

/// Every finding, in no particular order.
pub fn check(manifest: &Manifest) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    let names = Names::of(manifest);
    schemas::check(manifest, &names, &mut findings);
    roles::check(manifest, &names, &mut findings);
    grants::check(manifest, &names, &mut findings);
    defaults::check(manifest, &names, &mut findings);
    contradictions::check(manifest, &mut findings);
    members::check(manifest, &names, &mut findings);
    findings.0
}

#[derive(Default)]
struct Findings(Vec<Diagnostic>);

impl Findings {
    fn error(&mut self, path: Path, message: impl Into<String>) {
        self.0.push(Diagnostic::new(Severity::Error, path, message));
    }

    fn strict(&mut self, path: Path, message: impl Into<String>, help: Option<String>) {
        self.0.push(Diagnostic {
            help,
            ..Diagnostic::new(Severity::Strict, path, message)
        });
    }

    fn warning(&mut self, path: Path, message: impl Into<String>) {
        self.0.push(Diagnostic::new(Severity::Warning, path, message));
    }

    /// PostgreSQL truncates longer names silently, and the next run would not find the role.
    fn identifier(&mut self, path: Path, what: &str, name: &str) {
        if name.is_empty() {
            self.error(path, format!("{what} is empty"));
        } else if name.len() > 63 {
            self.error(
                path,
                format!(
                    "{what} \"{name}\" has {} bytes; PostgreSQL keeps 63 and cuts off the rest",
                    name.len()
                ),
            );
        } else if name.contains('\0') {
            self.error(path, format!("{what} contains a NUL byte"));
        }
    }

    /// A role that a rule refers to must be declared; otherwise it is probably a typo.
    fn declared(&mut self, path: Path, role: &str, names: &Names<'_>) {
        if !names.is_declared(role) {
            self.strict(
                path,
                format!("role \"{role}\" is not declared"),
                did_you_mean(role, names.declared()).or_else(|| {
                    Some("declare it under `roles`, with `external: true` if it is made elsewhere".to_owned())
                }),
            );
        }
    }
}
