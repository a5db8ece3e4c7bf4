//! Panels of single kinds: the way of a GitLab over its upgrade stops, the keys of a Supabase.

use maud::{Markup, html};
use serde_json::Value;
use stanchion_fleet::assess;
use stanchion_fleet::detail::Child;

use super::object::Shown;
use super::parts::ago;

/// The running version, the required stops that follow, and the target.
pub(super) fn upgrade(shown: &Shown) -> Markup {
    let running = shown
        .text("/status/observedVersion")
        .or(shown.text("/status/installedVersion"));
    let path = &shown.detail.upgrade_path;
    let target = shown.text("/status/targetVersion");
    html! {
        @if shown.detail.row.plural == "gitlabinstances" && (running.is_some() || !path.is_empty()) {
            section.panel {
                h2 {
                    "Upgrade path"
                    @if let Some(target) = target { small { "to " (target) } }
                }
                ol.steps {
                    @if let Some(running) = running {
                        li.done { b { (running) } span { (if path.is_empty() { "runs, up to date" } else { "runs" }) } }
                    }
                    @for (at, version) in path.iter().enumerate() {
                        li class=[(at == 0).then_some("now")] {
                            b { (version) }
                            span {
                                @if at + 1 == path.len() { "target" } @else { "required stop" }
                                @if at == 0 { ", next" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The keys of a Supabase: names and ages. Their values are never read.
pub(super) fn keys(shown: &Shown) -> Markup {
    const TIMES: [(&str, &str); 2] = [
        ("rotatedAt", "Created or rotated"),
        ("publishedAt", "New keys published"),
    ];
    let keys = shown.object.pointer("/status/keys");
    let secrets: Vec<&Child> = shown
        .detail
        .children
        .iter()
        .filter(|child| child.kind == "Secret")
        .collect();
    html! {
        @if shown.detail.row.plural == "supabaseprojects" && (keys.is_some() || !secrets.is_empty()) {
            section.panel {
                h2 { "Keys" small { "names and ages, never values" } }
                dl.facts {
                    @for (field, title) in TIMES {
                        @if let Some(time) = assess::time(keys.and_then(|keys| keys.get(field))) {
                            div { dt { (title) } dd { (ago(Some(time), &assess::duration(time, shown.now))) " ago" } }
                        }
                    }
                    @if let Some(until) = keys.and_then(|keys| keys.get("previousUntil")).and_then(Value::as_str) {
                        div { dt { "Previous keys valid until" } dd { (until) } }
                    }
                    @for secret in secrets { div { dt { "Secret " (secret.name) } dd { (secret.age) } } }
                }
            }
        }
    }
}
