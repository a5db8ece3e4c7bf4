//! Parses the text of `/metrics`.
//!
//! The metrics library writes this format and offers no other access to its values. So a collector gets exactly what a
//! scraper gets, and nothing is counted twice.

/// A metric family.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Family<'a> {
    /// The name without the suffix of its samples.
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    pub(super) help: &'a str,
    pub(super) unit: &'a str,
    pub(super) samples: Vec<Sample<'a>>,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sample<'a> {
    /// The name with its suffix: `_total`, `_bucket`, `_sum`, `_count`, `_info`.
    pub(super) name: &'a str,
    pub(super) labels: Vec<(&'a str, String)>,
    pub(super) value: &'a str,
}

/// All families of an exposition. Other lines are skipped.
pub(super) fn families(text: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (Some(what), Some(name)) = (words.next(), words.next()) else {
                continue;
            };
            let said = words.next().unwrap_or_default();
            if families.last().is_none_or(|family| family.name != name) {
                families.push(Family {
                    name,
                    ..Family::default()
                });
            }
            if let Some(family) = families.last_mut() {
                match what {
                    "HELP" => family.help = said,
                    "TYPE" => family.kind = said,
                    "UNIT" => family.unit = said,
                    _ => {}
                }
            }
        } else if let (Some(family), Some(sample)) = (families.last_mut(), sample(line)) {
            family.samples.push(sample);
        }
    }
    families
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let (name, rest) = line.split_at(line.find(['{', ' '])?);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    let value = rest.split_whitespace().next()?;
    Some(Sample { name, labels, value })
}

/// The labels up to the closing brace, and what follows it.
fn labels(mut text: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        text = text.trim_start_matches(',');
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (key, rest) = text.split_once("=\"")?;
        let (value, rest) = quoted(rest)?;
        labels.push((key, value));
        text = rest;
    }
}

/// A value up to its closing quote, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(match letters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            letter => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_their_samples() {
        let text = "# HELP a Some of it.\n# TYPE a counter\na_total{x=\"1\",y=\"b,}\\\"\\n\"} 7\na_total 8\n\
                    # HELP t_seconds How long.\n# TYPE t_seconds gauge\n# UNIT t_seconds seconds\nt_seconds 0.5\n# EOF\n";
        let families = families(text);
        let names: Vec<_> = families
            .iter()
            .map(|it| (it.name, it.kind, it.help, it.unit))
            .collect();
        assert_eq!(
            names,
            [
                ("a", "counter", "Some of it.", ""),
                ("t_seconds", "gauge", "How long.", "seconds")
            ]
        );
        assert_eq!(
            families[0].samples,
            [
                Sample {
                    name: "a_total",
                    labels: vec![("x", "1".into()), ("y", "b,}\"\n".into())],
                    value: "7"
                },
                Sample {
                    name: "a_total",
                    labels: vec![],
                    value: "8"
                }
            ]
        );
        assert_eq!(families[1].samples[0].value, "0.5");
    }

    #[test]
    fn half_a_line_is_left_out() {
        for line in ["a", "a{x=\"1", "a{x=\"1\"", "a{x} 1", "a{} "] {
            assert_eq!(sample(line), None, "{line}");
        }
    }
}
