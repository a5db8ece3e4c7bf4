//! Small parts that several pages use.

use jiff::Timestamp;
use maud::{Markup, html};
use stanchion_fleet::assess::State;
use stanchion_fleet::cluster::is_visible;
use stanchion_fleet::read::Unread;
use stanchion_fleet::redact;

/// Every state, in the order of the table.
pub(super) const STATES: [State; 7] = [
    State::Failed,
    State::NotReady,
    State::Deleting,
    State::Unknown,
    State::Reconciling,
    State::Suspended,
    State::Ready,
];

/// The class of a state in the style sheet.
pub(super) fn class(state: State) -> &'static str {
    match state {
        State::Failed => "s-failed",
        State::NotReady => "s-notready",
        State::Deleting => "s-deleting",
        State::Unknown => "s-unknown",
        State::Reconciling => "s-reconciling",
        State::Suspended => "s-suspended",
        State::Ready => "s-ready",
    }
}

/// The word of a state for people.
pub(super) fn word(state: State) -> &'static str {
    match state {
        State::NotReady => "Not ready",
        other => other.word(),
    }
}

/// A state with its colour, and never by colour alone.
pub(super) fn pill(state: State, phase: Option<&str>) -> Markup {
    // A phase that repeats the state says nothing new.
    let phase = phase.filter(|phase| !phase.eq_ignore_ascii_case(state.word()));
    html! {
        span class={ "pill " (class(state)) } { i {} (word(state)) }
        @if let Some(phase) = phase { span.phase { (phase) } }
    }
}

/// A time, which the script keeps current.
pub(super) fn ago(time: Option<Timestamp>, text: &str) -> Markup {
    html! {
        @if let Some(time) = time {
            time datetime=(time) title=(time) { (text) }
        } @else {
            span { (text) }
        }
    }
}

/// The shares of the states, as a bar.
pub(super) fn bar(counts: &[(State, usize)], label: &str) -> Markup {
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let mut at = 0;
    let mut pieces = Vec::new();
    for (state, count) in counts.iter().filter(|(_, count)| *count > 0) {
        // In thousandths; a small share stays visible.
        let from = at * 1000 / total.max(1);
        at += count;
        let to = at * 1000 / total.max(1);
        pieces.push((class(*state), from, (to - from).max(8)));
    }
    html! {
        svg.bar viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label=(label) {
            @if pieces.is_empty() { rect.empty width="1000" height="10" {} }
            @for (class, from, width) in pieces {
                rect class=(class) x=(from) width=(width) height="10" {}
            }
        }
    }
}

/// How many objects are in each state.
pub(super) fn counts<I: Iterator<Item = State> + Clone>(states: &I) -> Vec<(State, usize)> {
    STATES
        .into_iter()
        .map(|state| (state, states.clone().filter(|other| *other == state).count()))
        .collect()
}

/// A text of the operator or of the cluster.
pub(super) fn clean(text: &str) -> String {
    redact::text(text)
}

/// A text in which invisible characters, and those that change the direction of writing, are shown by their number: what a
/// person reads and approves is all there is, in its order.
pub(super) fn visible(text: &str) -> Markup {
    let is_hidden = |c: char| !is_visible(c) && !matches!(c, '\n' | '\t');
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((at, hidden)) = rest.char_indices().find(|(_, c)| is_hidden(*c)) {
        let (before, after) = rest.split_at(at);
        pieces.push((before, Some(hidden)));
        rest = after.get(hidden.len_utf8()..).unwrap_or_default();
    }
    pieces.push((rest, None));
    html! {
        @for (words, hidden) in pieces {
            (words)
            @if let Some(hidden) = hidden {
                mark.code title="A character that is not visible" { "U+" (format!("{:04X}", u32::from(hidden))) }
            }
        }
    }
}

/// A command to copy.
pub(super) fn command(line: &str) -> Markup {
    html! {
        div.command {
            code { (line) }
            button type="button" data-copy=(line) { "Copy" }
        }
    }
}

/// What the user may not read.
pub(super) fn unreadable(missing: &[Unread]) -> Markup {
    html! {
        @if !missing.is_empty() {
            aside.notice data-key="unreadable" aria-label="Not shown, or not current" {
                strong { "Not everything is shown, or current." }
                ul {
                    @for unread in missing {
                        li { code { (unread.kind) } " — " (clean(&unread.why.words())) }
                    }
                }
            }
        }
    }
}

/// A number with its noun.
pub(super) fn many(count: usize, one: &str, several: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {several}")
    }
}
