//! Pages with a sentence: a refusal, and the step from the token to the cookie.

use axum::response::Html;
use maud::html;

use super::{document, mark};

/// A page with a title and a sentence.
pub(crate) fn page(title: &str, text: &str) -> Html<String> {
    let body = html! {
        body.plain {
            main {
                (mark())
                h1 { (title) }
                p { (text) }
                p { a href="/" { "To the fleet" } }
            }
        }
    };
    document(title, &body)
}

/// A page that opens another one.
pub(crate) fn forward(to: &str) -> Html<String> {
    let body = html! {
        body.plain {
            main {
                (mark())
                h1 { "Opening" }
                p { a href=(to) data-forward { "Continue" } }
                noscript { meta http-equiv="refresh" content={ "0; url=" (to) }; }
            }
        }
    };
    document("Opening", &body)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_next_page_is_an_address_of_ours() {
        let html = super::forward("/o/a?q=\"><script>").0;
        assert!(
            html.contains(r#"href="/o/a?q=&quot;&gt;&lt;script&gt;""#),
            "{html}"
        );
    }
}
