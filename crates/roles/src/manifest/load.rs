//! Parses and checks manifests.

use serde::de::DeserializeOwned;

use super::bundle::{Bundle, Document};
use super::check::check;
use super::diagnostic::{Diagnostic, Invalid, Path, Severity, Strictness, judge};
use super::suggest::did_you_mean;
use super::types::Manifest;
use crate::expand::{Bounds, Size, TooLarge};
use crate::model::Privilege;
use crate::yaml::{self, Location, Node, Value};

/// A parsed value and its warnings.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded<T = Manifest> {
    /// The parsed value.
    pub value: T,
    /// Findings that do not stop.
    pub warnings: Vec<Diagnostic>,
}

/// Fields of a `PostgresPolicy` that belong to the operator, not to the role engine.
const OPERATOR_FIELDS: [&str; 9] = [
    "approval",
    "connection",
    "deletionPolicy",
    "interval",
    "mode",
    "planHistoryLimit",
    PROFILES_FROM,
    "reconciliation_mode",
    "suspend",
];
/// The field that names profiles in `ConfigMaps`.
const PROFILES_FROM: &str = "profilesFrom";

/// Parses and checks a manifest, or the `spec` of a Kubernetes object that contains one.
pub fn load(text: &str, strictness: Strictness) -> Result<Loaded, Invalid> {
    let document = parse(text)?;
    let (node, wrapped) = match document.get("spec") {
        Some(spec) if document.get("apiVersion").is_some() => (spec, true),
        _ => (&document, false),
    };
    let (manifest, mut findings) = read::<Manifest>(node)?;
    if wrapped {
        unresolved_profiles(node)?;
        findings.retain(|(finding, key)| {
            !OPERATOR_FIELDS.contains(&key.as_str()) || !is_top_level(node, key, finding.location)
        });
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

/// Whether a key at this location is one of the mapping's own, not of a mapping further down.
fn is_top_level(node: &Node, key: &str, at: Option<Location>) -> bool {
    match &node.value {
        Value::Mapping(entries) => entries
            .iter()
            .any(|(name, location, _)| name == key && Some(*location) == at),
        _ => false,
    }
}

/// Refuses a policy whose profiles are in the cluster: without them, the rest would be another manifest.
fn unresolved_profiles(spec: &Node) -> Result<(), Invalid> {
    let Some(from) = spec.get(PROFILES_FROM) else {
        return Ok(());
    };
    if matches!(&from.value, Value::Null) || from.value == Value::Sequence(vec![]) {
        return Ok(());
    }
    let message = "the profiles of `profilesFrom` are in ConfigMaps, which this program does not read";
    let mut refusal = Diagnostic::new(Severity::Error, Path::root(PROFILES_FROM), message)
        .help("copy them into `profiles` for this command, or let the operator plan with `mode: observe`");
    refusal.location = Some(from.location);
    Err(refusal.into())
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
