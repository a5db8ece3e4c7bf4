//! Removes secrets from a server's message about a statement that contains them.

use secrecy::{ExposeSecret, SecretString};

use crate::quote;

/// This many consecutive bytes of a secret reveal it. Shorter secrets count only as a whole.
const WINDOW: usize = 8;
const WITHHELD: &str = "[message withheld: it repeats part of a secret]";

/// The secrets that must not appear in a message.
#[derive(Default, Clone)]
pub(crate) struct Secrets(Vec<SecretString>);

impl Secrets {
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a SecretString>) -> Self {
        Self(secrets.into_iter().cloned().collect())
    }

    /// The text, or a replacement if it contains any [`WINDOW`] bytes of a secret.
    pub(crate) fn cleaned(&self, text: &str) -> String {
        if self
            .0
            .iter()
            .any(|secret| repeats(text.as_bytes(), secret.expose_secret()))
        {
            WITHHELD.to_owned()
        } else {
            text.to_owned()
        }
    }
}

/// Compares the secret itself and its form in the statement, in which quotes and backslashes are doubled.
fn repeats(text: &[u8], secret: &str) -> bool {
    [secret, &quote::literal(secret)].iter().any(|form| {
        let window = WINDOW.min(form.len());
        window > 0
            && form
                .as_bytes()
                .windows(window)
                .any(|part| text.windows(window).any(|seen| seen == part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_wholes() {
        let secrets = Secrets::new(&["SCRAM-SHA-256$4096:abcdefghij".into(), "short".into()]);
        let clean = "role \"app\" already exists";
        assert_eq!(secrets.cleaned(clean), clean);
        for text in [
            "near \"abcdefgh\"",
            "SCRAM-SHA-256",
            "… $4096:abc …",
            "a short one",
        ] {
            assert_eq!(secrets.cleaned(text), WITHHELD, "{text}");
        }
        assert_eq!(Secrets::default().cleaned("anything"), "anything");
    }

    #[test]
    fn the_quoted_form_is_found_too() {
        let secrets = Secrets::new(&["'''''''''".into()]);
        assert_eq!(secrets.cleaned("at or near \"''''''''''''\""), WITHHELD);
    }
}
