//! Names of Kubernetes objects in a spec.
//!
//! A name from a spec becomes part of a URL, and the client does not escape it. Therefore every field that names an
//! object has the pattern of such names in its schema ([`kind_of`] lists these fields), and the kernel rejects invalid
//! names before it builds a URL.

/// Names of most kinds: DNS subdomains as in RFC 1123.
pub const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
/// Names of namespaces: DNS labels as in RFC 1123.
pub const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
/// Keys of Secrets and `ConfigMaps`.
pub const KEY: &str = "[-._a-zA-Z0-9]+";

/// What a field refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An object.
    Object,
    /// A namespace.
    Namespace,
    /// A namespace, or `*` for all of them.
    NamespaceOrAll,
    /// A key in the data of a Secret or a `ConfigMap`.
    Key,
}

impl Kind {
    /// The pattern without anchors, and the maximum length.
    pub fn pattern(self) -> (String, i64) {
        match self {
            Self::Object => (SUBDOMAIN.into(), 253),
            Self::Namespace => (LABEL.into(), 63),
            Self::NamespaceOrAll => (format!(r"\*|{LABEL}"), 63),
            Self::Key => (KEY.into(), 253),
        }
    }
}

/// Path suffixes of all fields that name something in Kubernetes.
const FIELDS: &[(&str, Kind)] = &[
    ("ecretRef.name", Kind::Object),
    ("Secret.name", Kind::Object),
    (".imagePullSecrets[].name", Kind::Object),
    (".configMap.name", Kind::Object),
    ("KeyRef.name", Kind::Object),
    (".instanceRef.name", Kind::Object),
    (".policyRef.name", Kind::Object),
    (".parentRefs[].name", Kind::Object),
    (".sectionName", Kind::Object),
    (".credentialsSecret", Kind::Object),
    (".licenseSecret", Kind::Object),
    ("ecretName", Kind::Object),
    (".serviceAccountName", Kind::Object),
    (".claimName", Kind::Object),
    (".storageClass", Kind::Object),
    (".className", Kind::Object),
    ("spec.profile", Kind::Object),
    (".namespace", Kind::Namespace),
    (".allowedNamespaces.names[]", Kind::NamespaceOrAll),
    (".namespaces[]", Kind::NamespaceOrAll),
    ("ecretRef.key", Kind::Key),
    ("Secret.key", Kind::Key),
    ("KeyRef.key", Kind::Key),
    (".secretKey", Kind::Key),
    (".usernameKey", Kind::Key),
    (".passwordKey", Kind::Key),
];

/// What the field at this path refers to, if it names anything.
pub fn kind_of(path: &str) -> Option<Kind> {
    let row = FIELDS.iter().find(|(end, _)| path.ends_with(end));
    row.map(|(_, kind)| *kind)
}

/// Whether the text is a valid object name, that is a DNS subdomain. Some kinds allow more (RBAC roles may contain
/// colons), but no object that a spec names is of such a kind.
pub fn is_object(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_label_of_any_length)
}

/// Whether the text is a valid namespace name, that is a DNS label.
pub fn is_namespace(name: &str) -> bool {
    name.len() <= 63 && is_label_of_any_length(name)
}

fn is_label_of_any_length(name: &str) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.first().is_some_and(is_inner)
        && bytes.last().is_some_and(is_inner)
        && bytes.iter().all(|byte| is_inner(byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_names() {
        for name in ["a", "a-b", "a.b-c.0", &"a".repeat(253)] {
            assert!(is_object(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "../../bank/secrets/pw",
            "pw?watch=true",
            "pw#x",
            "a%2fb",
            "A",
            "a_b",
            "-a",
            "a-",
            "a..b",
            "a b",
            "ä",
            "a\n",
            &"a".repeat(254),
        ] {
            assert!(!is_object(name), "{name}");
        }
        assert!(is_namespace("a-1") && !is_namespace("a.b") && !is_namespace(&"a".repeat(64)));
    }
}
