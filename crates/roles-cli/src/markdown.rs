//! A plan as a Markdown table, for reviews.

use std::fmt::Write as _;

use stanchion_roles::plan::Plan;
use stanchion_roles::render;
use stanchion_roles::review::{Priority, priority, redacted};

/// The table; `sources` names the document of each change, `fingerprint` the review artifact of the same plan.
pub(super) fn table(plan: &Plan, sources: Option<&[String]>, fingerprint: Option<&str>) -> String {
    let count = |wanted| {
        plan.changes
            .iter()
            .filter(|change| priority(change) == wanted)
            .count()
    };
    // The heading is pgroles': scripts use it to find the comment of the last run.
    let mut text = format!("## pgroles review\n\nPlan: {} change(s)", plan.summary().total());
    if plan.is_empty() {
        text.push_str(". No changes needed. Database is in sync with manifest.\n");
    } else {
        let _ = write!(
            text,
            ": **{} high priority**, {} review, {} informational. Plan `{}`.\n\n",
            count(Priority::High),
            count(Priority::Review),
            count(Priority::Informational),
            plan.digest()
        );
        text.push_str("| priority | statement | source |\n|---|---|---|\n");
    }
    for (index, change) in plan.changes.iter().enumerate() {
        let source = sources.and_then(|sources| sources.get(index)).map_or("", |s| s);
        for statement in render::display(&redacted(change), plan) {
            let _ = writeln!(
                text,
                "| {:?} | `{}` | {} |",
                priority(change),
                cell(&statement),
                cell(source)
            );
        }
    }
    for blocker in &plan.blockers {
        let _ = write!(
            text,
            "\n> apply would refuse this plan: {}\n",
            cell(&blocker.message)
        );
    }
    if let Some(fingerprint) = fingerprint {
        let _ = write!(text, "\nRecorded review artifact fingerprint: `{fingerprint}`\n");
    }
    text
}

/// Escapes a table cell: a pipe would end the cell, a backtick the code.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('`', "ˋ").replace('\n', " ")
}
