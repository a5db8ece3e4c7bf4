//! The fleet: all objects by kind and state, the worst first, with search and filters in the address.

use std::collections::BTreeMap;

use axum::response::Html;
use maud::{Markup, html};
use stanchion_fleet::assess::{Row, State};
use stanchion_fleet::cluster::Unreadable;

use super::parts::{ago, bar, class, clean, counts, many, pill, unreadable, word};
use super::{Frame, page as framed, path};
use crate::live::Fleet;
use crate::query::Query;

pub(crate) fn page(frame: &Frame<'_>, fleet: &Fleet, query: &Query) -> Html<String> {
    let filter = Filter::of(query);
    let shown: Vec<&Row> = fleet.rows.iter().filter(|row| filter.admits(row)).collect();
    // The kinds count what the other filters leave, and so do the states: a number says what a click shows.
    let of_kinds = Filter {
        kind: None,
        ..filter.clone()
    };
    let of_states = Filter {
        state: None,
        ..filter.clone()
    };
    let content = html! {
        (summary(fleet))
        (kinds(fleet, &of_kinds, query))
        (search(query))
        (states(fleet, &of_states, query))
        (unreadable(&fleet.unreadable))
        @if frame.namespace.is_none() && fleet.unreadable.iter().any(|it| it.why == Unreadable::Forbidden) {
            p.hint { "To see one namespace only, start with " code { "stanchion ui -n NAMESPACE" } "." }
        }
        @if !fleet.reading.is_empty() {
            p.hint { "Still reading: " (fleet.reading.join(", ")) "." }
        }
        (rows(&shown, fleet.rows.is_empty()))
    };
    framed(frame, &content)
}

/// The filters of an address.
#[derive(Clone, Debug, Default)]
struct Filter {
    words: Vec<String>,
    kind: Option<String>,
    state: Option<String>,
    namespace: Option<String>,
}

impl Filter {
    fn of(query: &Query) -> Self {
        let own = |name| query.get(name).map(str::to_owned);
        Self {
            words: query
                .get("q")
                .unwrap_or_default()
                .to_lowercase()
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            kind: own("kind"),
            state: own("state"),
            namespace: own("ns"),
        }
    }

    fn admits(&self, row: &Row) -> bool {
        let is =
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        if !is(&self.kind, &row.plural)
            || !is(&self.state, row.state.word())
            || !is(&self.namespace, &row.namespace)
        {
            return false;
        }
        let text = |field: &Option<String>| field.as_deref().unwrap_or_default().to_lowercase();
        self.words.is_empty() || {
            let all = format!(
                "{} {}/{} {} {} {} {}",
                row.kind.to_lowercase(),
                row.namespace,
                row.name,
                row.state.word().to_lowercase(),
                text(&row.phase),
                text(&row.reason),
                text(&row.waits_for)
            );
            self.words.iter().all(|word| all.contains(word.as_str()))
        }
    }
}

/// One sentence and one bar.
fn summary(fleet: &Fleet) -> Markup {
    let counts = counts(&fleet.rows.iter().map(|row| row.state));
    let count = |state| {
        counts
            .iter()
            .find(|(other, _)| *other == state)
            .map_or(0, |(_, count)| *count)
    };
    let waiting = fleet
        .rows
        .iter()
        .filter(|row| row.plural == super::PLANS && row.phase.as_deref() == Some("Pending"))
        .count();
    let mut words = vec![many(fleet.rows.len(), "object", "objects")];
    words.push(format!("{} ready", count(State::Ready)));
    let bad = count(State::Failed) + count(State::NotReady);
    if bad > 0 {
        words.push(many(bad, "needs attention", "need attention"));
    }
    if waiting > 0 {
        words.push(many(
            waiting,
            "plan waits for a decision",
            "plans wait for a decision",
        ));
    }
    let title = match () {
        () if fleet.rows.is_empty() => "No objects",
        () if bad > 0 => "Something needs attention",
        () if count(State::Ready) + count(State::Suspended) == fleet.rows.len() => "All is well",
        () => "Work in progress",
    };
    html! {
        section.summary {
            h1 { (title) }
            p { (words.join(" · ")) }
            (bar(&counts, "Share of each state"))
        }
    }
}

/// One card per kind.
fn kinds(fleet: &Fleet, filter: &Filter, query: &Query) -> Markup {
    let mut by: BTreeMap<(&str, &str), Vec<State>> = BTreeMap::new();
    for row in fleet.rows.iter().filter(|row| filter.admits(row)) {
        by.entry((&row.kind, &row.plural)).or_default().push(row.state);
    }
    let chosen = query.get("kind");
    html! {
        @if !by.is_empty() {
            nav.kinds aria-label="Kinds" {
                @for ((kind, plural), states) in &by {
                    @let is_chosen = chosen == Some(*plural);
                    @let to = query.with("kind", (!is_chosen).then_some(*plural)).on("/");
                    @let worst = states.iter().min().copied().unwrap_or(State::Unknown);
                    a.card href=(to) aria-current=[is_chosen.then_some("true")] data-key=(plural) {
                        span.name { (kind) }
                        span.count { (states.len()) }
                        (bar(&counts(&states.iter().copied()), &format!("States of {kind}")))
                        span class={ "worst " (class(worst)) } {
                            @let same = states.iter().filter(|state| **state == worst).count();
                            (same) " " (word(worst).to_lowercase())
                        }
                    }
                }
            }
        }
    }
}

fn search(query: &Query) -> Markup {
    html! {
        form.search data-key="search" method="get" action="/" role="search" data-search {
            label.hidden for="q" { "Search" }
            input #q type="search" name="q" value=[query.get("q")] placeholder="Search by name, namespace, kind, reason"
                autocomplete="off" spellcheck="false";
            kbd aria-hidden="true" { "/" }
            @for name in ["kind", "state", "ns"] {
                @if let Some(value) = query.get(name) { input type="hidden" name=(name) value=(value); }
            }
            button.hidden type="submit" { "Search" }
        }
    }
}

/// One chip per state that occurs, and the namespace if one is chosen.
fn states(fleet: &Fleet, filter: &Filter, query: &Query) -> Markup {
    let counts = counts(
        &fleet
            .rows
            .iter()
            .filter(|row| filter.admits(row))
            .map(|row| row.state),
    );
    let chosen = query.get("state");
    html! {
        nav.chips aria-label="States" {
            @for (state, count) in counts {
                @let is_chosen = chosen == Some(state.word());
                @if count > 0 || is_chosen {
                    @let to = query.with("state", (!is_chosen).then_some(state.word())).on("/");
                    a class={ "chip " (class(state)) } href=(to) aria-current=[is_chosen.then_some("true")] {
                        i {} (word(state)) " " b { (count) }
                    }
                }
            }
            @if let Some(namespace) = query.get("ns") {
                a.chip href=(query.with("ns", None).on("/")) aria-current="true" { "namespace " (namespace) " ×" }
            }
        }
    }
}

fn rows(rows: &[&Row], is_empty: bool) -> Markup {
    html! {
        @if rows.is_empty() {
            p.nothing {
                @if is_empty { "There is nothing to show yet. Apply an object, and it appears here." }
                @else { "Nothing matches. " a href="/" { "Show everything" } }
            }
        } @else {
            ol.rows data-key="rows" {
                @for row in rows {
                    li data-key={ (row.plural) "/" (row.namespace) "/" (row.name) } {
                        a.row href=(path(&row.plural, &row.namespace, &row.name)) {
                            span.who {
                                span.title { (row.name) }
                                span.sub { (row.kind) " · " (row.namespace) }
                            }
                            span.how { (pill(row.state, row.phase.as_deref())) }
                            span.why {
                                @if let Some(waits) = &row.waits_for { (clean(waits)) }
                                @else if let Some(reason) = row.reason.as_deref().filter(|reason| *reason != row.state.word()) { (reason) }
                            }
                            span.when { (ago(row.since, &row.held)) }
                        }
                    }
                }
            }
        }
    }
}
