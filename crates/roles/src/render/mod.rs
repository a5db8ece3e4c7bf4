//! Renders changes as SQL.
//!
//! [`display`] writes one statement for each change and object, for people to read and to run. [`statements`] writes
//! what `apply` runs: the same, with GRANTs and REVOKEs merged where possible, and passwords as SCRAM verifiers.

mod members;
mod merge;
mod one;
mod privileges;
mod roles;
mod types;

pub use merge::{Statements, statements};

use crate::plan::{Change, Plan};

/// The plan as a script, with passwords redacted. No newline at the end.
pub fn script(plan: &Plan) -> String {
    let mut script = String::new();
    for line in plan.changes.iter().flat_map(|change| display(change, plan)) {
        if !script.is_empty() {
            script.push('\n');
        }
        script.push_str(&line);
        script.push(';');
    }
    script
}

/// The statements of one change, with passwords redacted, without semicolons.
pub fn display(change: &Change, plan: &Plan) -> Vec<String> {
    let statements = one::render(change, plan, one::Secrets::Redacted);
    statements.iter().map(ToString::to_string).collect()
}
