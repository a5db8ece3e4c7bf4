//! A plan as a Markdown table, for a review.

use std::fmt::Write as _;

use crate::plan::Plan;
use crate::render;

pub(super) fn table(plan: &Plan) -> String {
    let mut text = format!("### Plan: {} change(s)\n\n", plan.summary().total());
    if plan.is_empty() {
        text.push_str("No changes needed. Database is in sync with manifest.\n");
        return text;
    }
    let _ = write!(text, "`{}`\n\n| # | statement |\n|---:|---|\n", plan.digest());
    let statements = plan
        .changes
        .iter()
        .flat_map(|change| render::display(change, plan));
    for (number, statement) in statements.enumerate() {
        // A pipe would end the cell, a backtick the code.
        let cell = statement.replace('|', "\\|").replace('`', "ˋ").replace('\n', " ");
        let _ = writeln!(text, "| {} | `{cell}` |", number + 1);
    }
    for blocker in &plan.blockers {
        let _ = write!(text, "\n> apply would refuse this plan: {blocker}\n");
    }
    text
}
