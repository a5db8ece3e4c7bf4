//! One object: what it waits for, its tree, conditions, dependencies, facts and events.

use axum::response::Html;
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::Value;
use stanchion_fleet::assess::State;
use stanchion_fleet::detail::{self, Child, Condition, Detail, Part};
use stanchion_fleet::read::Gathered;
use stanchion_fleet::redact;

use super::parts::{ago, class, clean, command, pill, unreadable};
use super::{Frame, PLANS, POLICIES, page as framed, path, steps};

/// A latency that fills its bar, in milliseconds.
const SLOW: i64 = 200;

/// An object without secrets, and what follows from it.
pub(crate) struct Shown {
    pub(crate) object: Value,
    pub(crate) detail: Detail,
    pub(super) now: Timestamp,
}

impl Shown {
    /// Redacts first: everything else reads the redacted object.
    pub(crate) fn of(mut gathered: Gathered, now: Timestamp) -> Self {
        gathered.object = redact::object(&gathered.object);
        Self {
            detail: detail::of(&gathered, now),
            object: gathered.object,
            now,
        }
    }

    /// A text in the object.
    pub(super) fn text(&self, pointer: &str) -> Option<&str> {
        self.object.pointer(pointer).and_then(Value::as_str)
    }
}

pub(crate) fn page(frame: &Frame<'_>, shown: &Shown) -> Html<String> {
    let detail = &shown.detail;
    let content = html! {
        (head(shown))
        (tabs(shown, false))
        (waits(detail))
        (unreadable(&detail.unreadable))
        div.columns data-key="columns" {
            div {
                (steps::upgrade(shown))
                (tree(detail))
                (conditions(&detail.conditions))
            }
            div {
                (dependencies(shown))
                (plans(detail))
                (steps::keys(shown))
                (facts(detail))
                (timeline(detail))
            }
        }
    };
    framed(frame, &content)
}

/// Where the object is, its name and its state.
pub(super) fn head(shown: &Shown) -> Markup {
    let row = &shown.detail.row;
    let by_kind = format!("/?kind={}", row.plural);
    let by_namespace = format!("/?ns={}", crate::query::encode(&row.namespace));
    html! {
        nav.crumbs aria-label="Path" {
            a href="/" { "Fleet" } span { "/" }
            a href=(by_kind) { (row.kind) } span { "/" }
            a href=(by_namespace) { (row.namespace) }
        }
        div.head {
            h1 { (row.name) }
            (pill(row.state, row.phase.as_deref()))
        }
        p.lead {
            "In this state for " (ago(row.since, &row.held)) ", created " (row.age) " ago"
        }
    }
}

/// The pages of a policy.
pub(super) fn tabs(shown: &Shown, is_access: bool) -> Markup {
    let row = &shown.detail.row;
    html! { @if row.plural == POLICIES { (policy_tabs(&row.namespace, &row.name, is_access)) } }
}

/// The pages of a policy, by name.
pub(super) fn policy_tabs(namespace: &str, name: &str, is_access: bool) -> Markup {
    let here = path(POLICIES, namespace, name);
    html! {
        nav.tabs aria-label="Pages of the policy" {
            a href=(here) aria-current=[(!is_access).then_some("page")] { "Overview" }
            a href={ (here) "/access" } aria-current=[is_access.then_some("page")] { "Access" }
        }
    }
}

/// What the object waits for, and what to do.
fn waits(detail: &Detail) -> Markup {
    let row = &detail.row;
    // The command that shows this object would not help here.
    let next = row
        .next
        .as_ref()
        .filter(|next| !next.starts_with("stanchion status") || !next.ends_with(&row.name));
    let said = row.waits_for.as_deref().map(clean);
    html! {
        section class={ "waits " (class(row.state)) } {
            @match (row.state, said) {
                (State::Ready, _) => { h2 { "Next" } p { "Nothing to do: it matches its spec." } }
                (_, Some(said)) => { h2 { "Waits for" } p { (said) } }
                (_, None) => { h2 { "Next" } p { "Nothing to do but wait: the operator is working on it." } }
            }
            @if let Some(next) = next { (command(next)) }
        }
    }
}

/// The components with their children, then the other children by kind.
fn tree(detail: &Detail) -> Markup {
    let of = |part: &Part| -> Vec<&Child> {
        let stem = format!("{}-{}", detail.row.name, part.name.to_lowercase());
        let below = format!("{stem}-");
        detail
            .children
            .iter()
            .filter(|child| child.name == stem || child.name.starts_with(&below))
            .collect()
    };
    let placed: Vec<&Child> = detail.components.iter().flat_map(of).collect();
    let others: Vec<&Child> = detail
        .children
        .iter()
        .filter(|child| child.kind != "PostgresPolicyPlan" && !placed.contains(child))
        .collect();
    html! {
        @if !detail.components.is_empty() || !others.is_empty() {
            section.panel {
                h2 {
                    "Components"
                    @if !detail.components.is_empty() {
                        @let good = detail.components.iter().filter(|part| part.ok).count();
                        small { (good) " of " (detail.components.len()) " ready" }
                    }
                }
                ul.tree {
                    li {
                        b { (detail.row.kind) " " (detail.row.name) }
                        ul {
                            @for part in &detail.components { (component(part, &of(part))) }
                            @for other in others { li { (child(other)) } }
                        }
                    }
                }
            }
        }
    }
}

fn component(part: &Part, children: &[&Child]) -> Markup {
    let state = if part.ok { State::Ready } else { State::NotReady };
    html! {
        li {
            span class={ "dot " (class(state)) } {}
            b { (part.name) } span.extra { (clean(&part.state)) }
            @if let Some(message) = &part.message { span.bad { (clean(message)) } }
            @if !children.is_empty() { ul { @for one in children { li { (child(one)) } } } }
        }
    }
}

fn child(child: &Child) -> Markup {
    html! { span.kind { (child.kind) } (child.name) span.extra { (child.age) } }
}

fn conditions(conditions: &[Condition]) -> Markup {
    html! {
        @if !conditions.is_empty() {
            section.panel {
                h2 { "Conditions" }
                ul.conditions {
                    @for condition in conditions {
                        li data-key=(condition.kind) {
                            span class={ "dot " (class(tone(condition))) } {}
                            span.type { (condition.kind) " " small { (condition.status) " · " (condition.reason) } }
                            (ago(condition.since, &condition.held))
                            @if !condition.message.is_empty() { p { (clean(&condition.message)) } }
                        }
                    }
                }
            }
        }
    }
}

/// The colour of a condition. For some types, `True` is not a good state, and `False` says nothing.
fn tone(condition: &Condition) -> State {
    let is_true = condition.status == "True";
    match condition.kind.as_str() {
        "Stalled" | "Degraded" | "Conflict" | "Denied" if is_true => State::Failed,
        "Reconciling" if is_true => State::Reconciling,
        "Drifted" | "PasswordInSpec" if is_true => State::NotReady,
        "Paused" if is_true => State::Suspended,
        "Stalled" | "Degraded" | "Conflict" | "Denied" | "Reconciling" | "Drifted" | "PasswordInSpec"
        | "Paused" => State::Unknown,
        _ if is_true => State::Ready,
        _ if condition.status == "False" => State::NotReady,
        _ => State::Unknown,
    }
}

fn dependencies(shown: &Shown) -> Markup {
    let latency = |name: &str| {
        let field = shown.object.pointer("/status/dependencies")?.get(name)?;
        field.get("latencyMs").and_then(Value::as_i64)
    };
    html! {
        @if !shown.detail.dependencies.is_empty() {
            section.panel {
                h2 { "Dependencies" }
                ul.latency {
                    @for part in &shown.detail.dependencies {
                        @let state = if part.ok { State::Ready } else { State::Failed };
                        li class=(class(state)) {
                            span { (part.name) }
                            span.ms { (clean(&part.state)) }
                            @if let Some(milliseconds) = latency(&part.name) {
                                @let width = (milliseconds.clamp(1, SLOW) * 100 / SLOW).max(1);
                                svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
                                    rect width=(width) height="6" {}
                                }
                            }
                            @if let Some(message) = &part.message { p { (clean(message)) } }
                        }
                    }
                }
            }
        }
    }
}

/// The plans of a policy, the newest first.
fn plans(detail: &Detail) -> Markup {
    let plans: Vec<&Child> = detail
        .children
        .iter()
        .rev()
        .filter(|child| child.kind == "PostgresPolicyPlan")
        .collect();
    html! {
        @if !plans.is_empty() {
            section.panel {
                h2 { "Plans" }
                ul.list {
                    @for plan in plans {
                        li {
                            a href=(path(PLANS, &detail.row.namespace, &plan.name)) { (plan.name) }
                            small { (plan.age) }
                        }
                    }
                }
            }
        }
    }
}

fn facts(detail: &Detail) -> Markup {
    html! {
        @if !detail.facts.is_empty() {
            section.panel {
                h2 { "Status" }
                dl.facts {
                    @for (name, value) in &detail.facts { div { dt { (name) } dd { (clean(value)) } } }
                }
            }
        }
    }
}

/// The last events, the newest first.
fn timeline(detail: &Detail) -> Markup {
    html! {
        section.panel {
            h2 { "Events" }
            @if detail.events.is_empty() {
                p.hint { "No event. Kubernetes keeps events for an hour." }
            } @else {
                ol.timeline {
                    @for event in detail.events.iter().rev() {
                        li class=[(event.kind == "Warning").then_some("warning")] {
                            span.at { (ago(event.time, &event.ago)) }
                            span.reason {
                                (event.reason)
                                @if event.count > 1 { " " b { "×" (event.count) } }
                            }
                            p { (clean(&event.note)) }
                        }
                    }
                }
            }
        }
    }
}
