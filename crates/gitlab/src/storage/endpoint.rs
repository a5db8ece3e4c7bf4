//! The address of the object storage: users write it with and without a scheme, and GitLab's parts need both forms.

use std::fmt;
use std::str::FromStr;

/// A scheme, a host, and an optional port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) secure: bool,
    pub(super) authority: String,
}

/// A text that is not an endpoint. The text is not repeated: it may be a credential under the wrong key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotAnEndpoint;

impl FromStr for Endpoint {
    type Err = NotAnEndpoint;

    /// The default scheme is https. A path is refused, because the backup tool does not support one.
    fn from_str(text: &str) -> Result<Self, NotAnEndpoint> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("https", text));
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(NotAnEndpoint),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        if authority.is_empty() || !authority.chars().all(plain) {
            return Err(NotAnEndpoint);
        }
        Ok(Self {
            secure,
            authority: authority.to_owned(),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_may_be_left_out() {
        for (written, meant) in [
            ("s3.example.com", "https://s3.example.com"),
            ("https://s3.example.com/", "https://s3.example.com"),
            ("HTTP://minio.storage.svc:9000", "http://minio.storage.svc:9000"),
            ("[fd00::1]:9000", "https://[fd00::1]:9000"),
        ] {
            assert_eq!(written.parse::<Endpoint>().unwrap().to_string(), meant);
        }
    }

    #[test]
    fn what_no_part_could_use_is_refused() {
        for text in [
            "",
            "https://",
            "s3://bucket",
            "https://s3.example.com/path",
            "key:se/cret",
            "a b",
            "u@host",
            "%(bucket)s",
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(NotAnEndpoint), "{text}");
        }
    }
}
