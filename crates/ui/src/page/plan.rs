//! A plan: its differences and its SQL, and the decision.

use std::collections::BTreeMap;

use axum::response::Html;
use maud::{Markup, html};
use serde_json::Value;
use stanchion_api::policy::annotation;

use super::object::{Shown, head};
use super::parts::{clean, unreadable, visible};
use super::{Frame, POLICIES, page as framed, path};
use crate::act::Sql;
use crate::sql::{Change, Effect, Token, changes, tokens};

pub(crate) fn page(
    frame: &Frame<'_>,
    shown: &Shown,
    sql: &Sql,
    form: &str,
    refused: Option<&str>,
) -> Html<String> {
    let differences = sql.shown().ok().map(changes);
    let content = html! {
        (head(shown))
        @if let Some(refused) = refused {
            div.notice.bad role="alert" {
                strong { "Refused. " } (refused) " " a href=(address(shown)) { "Back to the plan" }
            }
        }
        (incomplete(sql))
        (decision(shown, sql, form))
        (numbers(shown))
        (unreadable(&shown.detail.unreadable))
        @if let Some(error) = shown.text("/status/lastError") {
            div.notice.bad { strong { "The last attempt failed. " } (clean(error)) }
        }
        div.columns data-key="columns" {
            div {
                @if let Some((text, differences)) = sql.shown().ok().zip(differences) {
                    section.panel {
                        h2 { "Difference to the database" small { (differences.len()) " statements" } }
                        (difference(&differences))
                    }
                    section.panel {
                        h2 { "SQL" small { "as the operator runs it, without passwords" } }
                        pre.sql tabindex="0" aria-label="SQL of the plan" { code { (highlighted(text)) } }
                    }
                }
            }
            div { (about(shown)) }
        }
    };
    framed(frame, &content)
}

/// Why not all of the SQL is shown.
fn incomplete(sql: &Sql) -> Markup {
    html! {
        @if let Sql::Cut { why, .. } = sql { div.notice { (why) } }
        @if let Err(why) = sql.shown() {
            div.notice.bad role="alert" {
                strong { "This plan cannot be approved here, because its SQL cannot be shown. " } (clean(why))
            }
        }
    }
}

fn address(shown: &Shown) -> String {
    let row = &shown.detail.row;
    path(&row.plural, &row.namespace, &row.name)
}

/// The state of the decision, as the plan itself says it.
fn decision(shown: &Shown, sql: &Sql, form: &str) -> Markup {
    let is_set = |name: &str| {
        let annotations = shown.object.pointer("/metadata/annotations");
        annotations.and_then(|all| all.get(name)).and_then(Value::as_str) == Some("true")
    };
    let phase = shown.text("/status/phase").unwrap_or("Pending");
    let uid = shown.text("/metadata/uid").unwrap_or_default();
    html! {
        @if phase != "Pending" {
            p.hint { "This plan is " (phase.to_lowercase()) (by(shown)) "." }
        } @else if is_set(annotation::REJECTED) {
            div.notice role="status" { strong { "Rejected. " } "The operator records it in the status." }
        } @else if is_set(annotation::APPROVED) {
            div.notice role="status" { strong { "Approved. " } "The operator applies the plan next." }
        } @else {
            form.decide method="post" action={ (address(shown)) "/decide" } {
                p {
                    "This plan waits for a decision."
                    small { "You decide as the user of your kubeconfig." }
                }
                input type="hidden" name="form" value=(form);
                input type="hidden" name="uid" value=(uid);
                button.danger name="decision" value="reject" { "Reject" }
                @if sql.shown().is_ok() { button.primary name="decision" value="approve" { "Approve" } }
            }
        }
    }
}

fn by(shown: &Shown) -> String {
    let who = shown.text("/status/decidedBy/username");
    who.map(|who| format!(", decided by {who}")).unwrap_or_default()
}

/// The summary of the changes, without what is zero.
fn numbers(shown: &Shown) -> Markup {
    let summary = shown
        .object
        .pointer("/status/changeSummary")
        .and_then(Value::as_object);
    html! {
        @if let Some(summary) = summary {
            div.numbers {
                @for (name, count) in summary {
                    @if let Some(count) = count.as_i64().filter(|count| *count > 0) {
                        span { b { (count) } " " (name.replace('_', " ")) }
                    }
                }
            }
        }
    }
}

/// The differences by role: those without a role last.
fn difference(changes: &[Change]) -> Markup {
    let mut by: BTreeMap<(bool, &str), Vec<&Change>> = BTreeMap::new();
    for change in changes {
        let role = change.role.as_deref();
        by.entry((role.is_none(), role.unwrap_or("other objects")))
            .or_default()
            .push(change);
    }
    html! {
        @if changes.is_empty() { p.hint { "The plan changes nothing." } }
        div.change {
            @for ((_, role), changes) in by {
                h3 { (visible(role)) }
                ul {
                    @for change in changes {
                        @let (class, sign, word) = match change.effect {
                            Effect::Add => ("add", "+", "adds"),
                            Effect::Remove => ("remove", "−", "removes"),
                            Effect::Modify => ("modify", "~", "changes"),
                        };
                        li class=(class) data-sign=(sign) {
                            code { span.hidden { (word) ": " } (highlighted(&change.text)) }
                        }
                    }
                }
            }
        }
    }
}

/// SQL with colours.
fn highlighted(sql: &str) -> Markup {
    html! {
        @for (kind, text) in tokens(sql) {
            @match kind {
                Token::Keyword => { span.k { (visible(text)) } }
                Token::Text => { span.s { (visible(text)) } }
                Token::Name => { span.q { (visible(text)) } }
                Token::Number => { span.n { (visible(text)) } }
                Token::Comment => { span.c { (visible(text)) } }
                Token::Other => { (visible(text)) }
            }
        }
    }
}

fn about(shown: &Shown) -> Markup {
    const FACTS: [(&str, &str); 6] = [
        ("/spec/reconciliationMode", "Mode"),
        ("/spec/managedDatabaseIdentity", "Database"),
        ("/status/changeDigest", "Digest"),
        ("/status/computedAt", "Computed"),
        ("/status/appliedAt", "Applied"),
        ("/status/failedAt", "Failed"),
    ];
    html! {
        section.panel {
            h2 { "About" }
            dl.facts {
                @if let Some(policy) = shown.text("/spec/policyRef/name") {
                    div { dt { "Policy" } dd { a href=(path(POLICIES, &shown.detail.row.namespace, policy)) { (policy) } } }
                }
                @for (pointer, title) in FACTS {
                    // What the redaction has blanked says nothing.
                    @if let Some(value) = shown.text(pointer).filter(|value| *value != "[REDACTED]") {
                        div { dt { (title) } dd { (clean(value)) } }
                    }
                }
            }
        }
    }
}
