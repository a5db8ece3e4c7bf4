//! Values to HTML. Everything is escaped; nothing here does I/O.

pub(crate) mod access;
pub(crate) mod fleet;
mod graph;
pub(crate) mod object;
mod parts;
pub(crate) mod plain;
pub(crate) mod plan;
mod steps;
#[cfg(test)]
mod tests;

use axum::response::Html;
use maud::{DOCTYPE, Markup, html};

use crate::query::encode;

/// The plural name of the plans, which have a page of their own.
pub(crate) const PLANS: &str = "postgrespolicyplans";
/// The plural name of the policies, whose access has a page.
pub(crate) const POLICIES: &str = "postgrespolicies";

/// The version in the addresses of the assets.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is around every page.
pub(crate) struct Frame<'a> {
    pub(crate) title: &'a str,
    /// The path of the page, which selects its changes.
    pub(crate) path: &'a str,
    /// Whether the page is kept current. The answer to a form is not: to read it again is to send the form again.
    pub(crate) is_live: bool,
    pub(crate) cluster: &'a str,
    /// The only namespace, if there is one.
    pub(crate) namespace: Option<&'a str>,
}

/// The path of an object's page.
pub(crate) fn path(plural: &str, namespace: &str, name: &str) -> String {
    format!("/o/{}/{}/{}", encode(plural), encode(namespace), encode(name))
}

/// The keys, and what they do.
const HELP: [(&[&str], &str); 6] = [
    (&["/"], "Search"),
    (&["j", "k"], "Next and previous object"),
    (&["Enter"], "Open it"),
    (&["u"], "Up to the fleet"),
    (&["+", "−", "0"], "Zoom a graph; 0 shows all of it"),
    (&["?"], "This help"),
];

/// A whole page.
pub(crate) fn page(frame: &Frame<'_>, content: &Markup) -> Html<String> {
    let host = frame.cluster.trim_end_matches('/');
    let host = host.split_once("://").map_or(host, |(_, host)| host);
    let live = frame.is_live.then(|| format!("/live?at={}", encode(frame.path)));
    let body = html! {
        body data-live=[&live] {
            a.skip href="#main" { "Skip to the content" }
            header.top {
                a.brand href="/" { (mark()) span { "Stanchion" } }
                span.cluster title="The cluster of your kubeconfig" {
                    (host)
                    @if let Some(namespace) = frame.namespace { " · " (namespace) }
                }
                @if live.is_some() { span.live role="status" { i {} span { "connecting" } } }
                button.help type="button" data-help aria-label="Keyboard help" { "?" }
            }
            main #main tabindex="-1" { (content) }
            dialog #help aria-labelledby="help-title" {
                h2 #help-title { "Keyboard" }
                dl {
                    @for (keys, meaning) in HELP {
                        div {
                            dt { @for key in keys { kbd { (key) } } }
                            dd { (meaning) }
                        }
                    }
                }
                form method="dialog" { button { "Close" } }
            }
        }
    };
    document(frame.title, &body)
}

/// The head, and this body.
fn document(title: &str, body: &Markup) -> Html<String> {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Stanchion" }
                link rel="icon" type="image/svg+xml" href={ "/assets/icon.svg?" (VERSION) };
                link rel="stylesheet" href={ "/assets/style.css?" (VERSION) };
                script src={ "/assets/page.js?" (VERSION) } defer {}
            }
            (body)
        }
    };
    Html(markup.into_string())
}

fn mark() -> Markup {
    html! {
        svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true" {
            rect.mark width="32" height="32" rx="8" {}
            path d="M10 8h12M16 8v16M9 24h14M12 16h8" fill="none" stroke="#fff" stroke-width="2.6"
                stroke-linecap="round" {}
        }
    }
}
