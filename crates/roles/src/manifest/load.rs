//! Parses and checks manifests.

use serde::de::DeserializeOwned;

use super::bundle::{Bundle, Document};
use super::check::check;
use super::diagnostic::{Diagnostic, Invalid, Path, Severity, Strictness, judge};
use super::suggest::did_you_mean;
use super::types::Manifest;
use crate::expand::{Bounds, Size, TooLarge};
use crate::model::Privilege;
use crate::yaml::{self, Node};

/// A parsed value and its warnings.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded<T = Manifest> {
    /// The parsed value.
    pub value: T,
    /// Findings that do not stop.
    pub warnings: Vec<Diagnostic>,
}

/// Fields of a `PostgresPolicy` that belong to the operator, not to the role engine.
const OPERATOR_FIELDS: [&str; 6] = [
    "approval",
    "connection",
    "interval",
    "mode",
    "reconciliation_mode",
    "suspend",
];

/// Parses and checks a manifest, or the `spec` of a Kubernetes object that contains one.
pub fn load(text: &str, strictness: Strictness) -> Result<Loaded, Invalid> {
    let document = parse(text)?;
    let (node, wrapped) = match document.get("spec") {
        Some(spec) if document.get("apiVersion").is_some() => (spec, true),
        _ => (&document, false),
    };
    let (manifest, mut findings) = read::<Manifest>(node)?;
    if wrapped {
        findings.retain(|(_, key)| !OPERATOR_FIELDS.contains(&key.as_str()));
    }
    Bounds::ALONE
        .admit(Size::of(&manifest))
        .map_err(|large| too_large(&large))?;
    let mut findings: Vec<_> = findings.into_iter().map(|(diagnostic, _)| diagnostic).collect();
    findings.extend(check(&manifest));
    for finding in &mut findings {
        finding.locate(node);
    }
    let warnings = judge(findings, strictness)?;
    Ok(Loaded {
        value: manifest,
        warnings,
    })
}

/// Parses the root of a bundle.
pub fn load_bundle(text: &str, strictness: Strictness) -> Result<Loaded<Bundle>, Invalid> {
    load_plain(text, strictness)
}

/// Parses one document of a bundle. Its rules are checked after it is composed with the others.
pub fn load_document(text: &str, strictness: Strictness) -> Result<Loaded<Document>, Invalid> {
    load_plain(text, strictness)
}

fn load_plain<T: DeserializeOwned>(text: &str, strictness: Strictness) -> Result<Loaded<T>, Invalid> {
    let (value, findings) = read(&parse(text)?)?;
    let warnings = judge(
        findings.into_iter().map(|(diagnostic, _)| diagnostic).collect(),
        strictness,
    )?;
    Ok(Loaded { value, warnings })
}

fn parse(text: &str) -> Result<Node, Invalid> {
    yaml::parse(text).map_err(|error| unreadable(&error))
}

/// Deserializes a value and reports its unknown keys as findings.
fn read<T: DeserializeOwned>(node: &Node) -> Result<(T, Vec<(Diagnostic, String)>), Invalid> {
    let (value, unknown) = yaml::from_node(node).map_err(|error| unreadable(&error))?;
    let findings = unknown
        .into_iter()
        .map(|unknown| {
            let diagnostic = Diagnostic {
                location: Some(unknown.location),
                help: did_you_mean(&unknown.key, unknown.known.iter().copied()),
                ..Diagnostic::new(
                    Severity::Strict,
                    Path::default(),
                    format!("unknown key `{}`", unknown.key),
                )
            };
            (diagnostic, unknown.key)
        })
        .collect();
    Ok((value, findings))
}

fn too_large(large: &TooLarge) -> Invalid {
    Diagnostic::new(Severity::Error, Path::default(), large.to_string()).into()
}

fn unreadable(error: &yaml::Error) -> Invalid {
    let help = misspelt_word(&error.message);
    Diagnostic {
        location: error.location,
        help,
        ..Diagnostic::new(
            Severity::Error,
            Path::default(),
            format!("YAML parse error: {}", error.message),
        )
    }
    .into()
}

/// Suggests the intended word for `unknown variant `TEMP`, expected one of …`.
fn misspelt_word(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown variant `")?;
    let (written, rest) = rest.split_once('`')?;
    let known: Vec<_> = rest.split('`').skip(1).step_by(2).collect();
    if known.contains(&Privilege::Select.name()) {
        let whole = known
            .iter()
            .copied()
            .find(|word| word.starts_with(&written.to_uppercase()) && written.len() > 2);
        if let Some(word) = whole {
            return Some(format!("did you mean `{word}`?"));
        }
    }
    did_you_mean(written, known)
}
