//! The access of a policy: its graph, and who can read a table and why.

use axum::response::Html;
use maud::{Markup, html};
use stanchion_roles::expand::Desired;
use stanchion_roles::graph;

use super::graph::{around, draw};
use super::object::policy_tabs;
use super::parts::many;
use super::{Frame, POLICIES, page as framed, path};
use crate::access::{Reader, readers, tables};
use crate::query::Query;
use crate::server::Place;

/// Suggestions in the form.
const SUGGESTED: usize = 200;

pub(crate) fn page(frame: &Frame<'_>, place: &Place, desired: &Desired, query: &Query) -> Html<String> {
    let whole = graph::desired(desired);
    let role = query.get("role");
    let shown = role.map_or_else(|| whole.clone(), |role| around(&whole, role));
    let address = |name: &str| query.with("role", Some(name)).on(frame.path);
    let meta = &whole.meta;
    let content = html! {
        nav.crumbs aria-label="Path" {
            a href="/" { "Fleet" } span { "/" }
            a href={ "/?kind=" (POLICIES) } { "PostgresPolicy" } span { "/" }
            a href=(path(POLICIES, &place.namespace, &place.name)) { (place.namespace) "/" (place.name) }
        }
        div.head { h1 { "Access" } }
        p.lead {
            (many(meta.role_count, "role", "roles")) ", " (many(meta.membership_count, "membership", "memberships")) ", "
            (many(meta.grant_count, "privilege rule", "privilege rules")) " · as the policy declares it"
        }
        (policy_tabs(&place.namespace, &place.name, true))
        @if let Some(role) = role {
            nav.chips aria-label="Filter" {
                a.chip href=(query.with("role", None).on(frame.path)) aria-current="true" { "only " (role) " ×" }
            }
        }
        (draw(&shown, &address))
        (question(desired, frame.path, query, &address))
    };
    framed(frame, &content)
}

fn question(desired: &Desired, here: &str, query: &Query, address: &dyn Fn(&str) -> String) -> Markup {
    let (schema, table) = (query.get("schema"), query.get("table"));
    let known = tables(desired);
    let mut schemas: Vec<&str> = known.iter().map(|(schema, _)| schema.as_str()).collect();
    schemas.extend(desired.schemas.keys().map(String::as_str));
    schemas.sort_unstable();
    schemas.dedup();
    html! {
        section.panel {
            h2 { "Who can read this table, and why?" }
            form.ask method="get" action=(here) {
                label { "Schema" input name="schema" value=[schema] list="schemas" required autocomplete="off"; }
                label { "Table or view" input name="table" value=[table] list="tables" required autocomplete="off"; }
                @if let Some(role) = query.get("role") { input type="hidden" name="role" value=(role); }
                button.primary type="submit" { "Show" }
                datalist id="schemas" { @for name in schemas.iter().take(SUGGESTED) { option value=(name) {} } }
                datalist id="tables" {
                    @for (_, name) in known.iter().filter(|(_, name)| name != "*").take(SUGGESTED) { option value=(name) {} }
                }
            }
            @if let Some((schema, table)) = schema.zip(table) {
                (answer(&readers(desired, schema, table), schema, table, address))
            }
        }
    }
}

fn answer(readers: &[Reader], schema: &str, table: &str, address: &dyn Fn(&str) -> String) -> Markup {
    html! {
        p.hint {
            @if readers.is_empty() { "By this policy, nobody can read " }
            @else { (many(readers.len(), "role reads ", "roles read ")) }
            code { (schema) "." (table) }
            ". Privileges that others granted outside of the policy are not listed; the owner of a table always reads it."
        }
        ul.readers {
            @for reader in readers {
                li {
                    b { a href=(address(&reader.role)) { (reader.role) } } @if reader.login { " " small { "can log in" } }
                    div.path {
                        @for name in reader.path.iter().skip(1) { span { "member of" } code { (name) } }
                        span { "→" } code { (reader.why) }
                    }
                    @for limit in &reader.limits { p.not { (limit) } }
                }
            }
        }
    }
}
