//! Patterns for names of roles, databases and namespaces.

/// Whether one of the patterns stands for the name.
pub(super) fn is_among(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| is_like(pattern, name))
}

/// `*` stands for any characters. Looks at each character of the pattern once for each of the name, at most.
pub(crate) fn is_like(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut open = false;
    let mut last = "";
    for part in parts {
        if let Some(found) = rest.find(last).filter(|_| open) {
            rest = rest.get(found + last.len()..).unwrap_or_default();
        } else if open {
            return false;
        }
        (open, last) = (true, part);
    }
    if open {
        rest.ends_with(last)
    } else {
        rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, like) in [
            ("*", "", true),
            ("*", "shop", true),
            ("shop", "shop", true),
            ("shop", "shops", false),
            ("shop*", "shop", true),
            ("shop*", "shop_a", true),
            ("*_ro", "shop_ro", true),
            ("*_ro", "shop_rw", false),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("a*b*b", "ab", false),
            ("a*b*b", "abb", true),
            ("**", "x", true),
        ] {
            assert_eq!(is_like(pattern, name), like, "{pattern} {name}");
        }
    }
}
