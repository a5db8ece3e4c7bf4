//! One object as a tree.

use std::fmt::Write as _;

use super::View;
use super::assess::State;
use super::colour::{paint, style};
use super::detail::{Detail, Part};
use super::table::cut;

/// Bold, and dim.
const TITLE: &str = "1";
const DIM: &str = "2";

/// A branch: its title, and its leaves with the state that determines their colour.
struct Branch {
    title: String,
    leaves: Vec<(Option<State>, String)>,
}

/// The tree.
pub(super) fn render(detail: &Detail, view: &View) -> String {
    let row = &detail.row;
    let mut text = String::new();
    let phase = row
        .phase
        .as_deref()
        .map(|phase| format!(" ({phase})"))
        .unwrap_or_default();
    let _ = writeln!(
        text,
        "{} {}  {}{phase} for {}",
        style(&row.kind, TITLE, view.paint),
        style(&format!("{}/{}", row.namespace, row.name), TITLE, view.paint),
        paint(row.state.word(), row.state, view.paint),
        row.held,
    );
    let branches = branches(detail);
    for (at, branch) in branches.iter().enumerate() {
        let last = at + 1 == branches.len();
        let (corner, trunk) = if last {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        let _ = writeln!(text, "{corner}{}", style(&branch.title, TITLE, view.paint));
        for (at, (state, leaf)) in branch.leaves.iter().enumerate() {
            let corner = if at + 1 == branch.leaves.len() {
                "└─ "
            } else {
                "├─ "
            };
            let room = view.width.map(|width| width.saturating_sub(6).max(20));
            let leaf = room.map_or_else(|| leaf.clone(), |room| cut(leaf, room));
            let leaf = match state {
                Some(state) => paint(&leaf, *state, view.paint),
                None => style(&leaf, DIM, view.paint),
            };
            let _ = writeln!(text, "{trunk}{corner}{leaf}");
        }
    }
    text
}

fn branches(detail: &Detail) -> Vec<Branch> {
    let mut branches = Vec::new();
    let mut add = |title: &str, leaves: Vec<(Option<State>, String)>| {
        if !leaves.is_empty() {
            branches.push(Branch {
                title: title.to_owned(),
                leaves,
            });
        }
    };
    let facts = detail
        .facts
        .iter()
        .map(|(name, value)| (None, format!("{name}: {value}")));
    add("status", facts.collect());
    if !detail.upgrade_path.is_empty() {
        add("upgrade path", vec![(None, detail.upgrade_path.join(" → "))]);
    }
    add("components", parts(&detail.components));
    add("dependencies", parts(&detail.dependencies));
    let conditions = detail.conditions.iter().map(|condition| {
        let state = match (condition.kind.as_str(), condition.status.as_str()) {
            ("Stalled", "True") => Some(State::Failed),
            // For these types, True is not a good state.
            ("Stalled" | "Reconciling" | "Drifted", _) => None,
            (_, "True") => Some(State::Ready),
            (_, "False") => Some(State::NotReady),
            _ => None,
        };
        let words = [
            format!("{}={}", condition.kind, condition.status),
            condition.reason.clone(),
            condition.held.clone(),
            condition.message.clone(),
        ];
        (state, joined(&words))
    });
    add("conditions", conditions.collect());
    let children = detail.children.iter().map(|child| {
        (
            None,
            joined(&[format!("{}/{}", child.kind, child.name), child.age.clone()]),
        )
    });
    add("children", children.collect());
    let events = detail.events.iter().map(|event| {
        let state = (event.kind == "Warning").then_some(State::NotReady);
        let count = if event.count > 1 {
            format!("×{}", event.count)
        } else {
            String::new()
        };
        let ago = format!("{} ago", event.ago);
        (
            state,
            joined(&[ago, event.reason.clone(), count, event.note.clone()]),
        )
    });
    add("events", events.collect());
    let unread = detail.unreadable.iter().map(|unread| {
        (
            Some(State::Unknown),
            format!("{}: {}", unread.kind, unread.why.words()),
        )
    });
    add("not shown", unread.collect());
    add("next", next(detail));
    branches
}

/// What the object waits for, and what the user can do.
fn next(detail: &Detail) -> Vec<(Option<State>, String)> {
    let row = &detail.row;
    if row.state == State::Ready {
        return vec![(Some(State::Ready), "nothing to do".to_owned())];
    }
    let mut leaves = Vec::new();
    leaves.extend(
        row.waits_for
            .as_ref()
            .map(|waits| (Some(row.state), format!("waits for: {waits}"))),
    );
    // The command that shows this tree would not help here.
    let command = row
        .next
        .as_ref()
        .filter(|next| !next.starts_with("stanchion status") || !next.ends_with(&row.name));
    leaves.extend(command.map(|next| (None, next.clone())));
    if leaves.is_empty() {
        leaves.push((None, "nothing to do but wait".to_owned()));
    }
    leaves
}

fn parts(parts: &[Part]) -> Vec<(Option<State>, String)> {
    let line = |part: &Part| {
        let state = if part.ok { State::Ready } else { State::NotReady };
        let words = [
            part.name.clone(),
            part.state.clone(),
            part.message.clone().unwrap_or_default(),
        ];
        (Some(state), joined(&words))
    };
    parts.iter().map(line).collect()
}

fn joined(words: &[String]) -> String {
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| !word.is_empty())
        .collect();
    words.join("  ")
}
