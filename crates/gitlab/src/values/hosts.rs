//! The hosts of GitLab and its parts. A part without a host is not installed: the chart would invent one.

use serde_json::{Value, json};

use super::{Input, Values};

pub(super) fn values(input: &Input<'_>) -> Value {
    let domains = &input.spec.domains;
    let parts = [
        ("gitlab", Some(&domains.gitlab)),
        ("registry", domains.registry.as_ref()),
        ("kas", domains.kas.as_ref()),
        ("pages", domains.pages.as_ref()),
    ];
    // Encryption is set once for all hosts: a host's own setting would override what users switch off for all.
    let mut hosts = Values::from_iter([
        ("domain".to_owned(), parent(&domains.gitlab).into()),
        ("https".to_owned(), true.into()),
    ]);
    hosts.extend(
        parts
            .into_iter()
            .filter_map(|(part, host)| Some((part.to_owned(), json!({ "name": host? })))),
    );
    json!({
        "registry": { "enabled": domains.registry.is_some() },
        "global": {
            "hosts": hosts,
            "registry": { "enabled": domains.registry.is_some() },
            "kas": { "enabled": domains.kas.is_some() },
            "pages": { "enabled": domains.pages.is_some() },
        },
    })
}

/// The parent domain of a host, for what the chart creates itself, such as a certificate for `*.example.com`: never a
/// top-level domain.
fn parent(host: &str) -> &str {
    match host.split_once('.') {
        Some((_, parent)) if parent.contains('.') => parent,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_is_the_hosts_parent_and_never_a_top_level_one() {
        assert_eq!(parent("git.example.com"), "example.com");
        assert_eq!(parent("git.dev.example.com"), "dev.example.com");
        assert_eq!(parent("example.com"), "example.com");
        assert_eq!(parent("gitlab"), "gitlab");
    }
}
