//! Parses label selectors.

use crate::error::ApiError;
use crate::lifecycle::is_label_key;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Requirement {
    Exists(String),
    Missing(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Above(String, i64),
    Below(String, i64),
}

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, ApiError> {
    let mut requirements = Vec::new();
    if text.trim().is_empty() {
        return Ok(requirements);
    }
    for term in split_outside_braces(text) {
        let term = term.trim();
        requirements.push(parse_label(term).ok_or_else(|| {
            ApiError::bad_request(format!(
                "unable to parse requirement: found '{term}', expected: a requirement"
            ))
        })?);
    }
    Ok(requirements)
}

fn parse_label(term: &str) -> Option<Requirement> {
    let plain = |text: &str| {
        let text = text.trim();
        (text.is_empty() || is_label_key(text)).then(|| text.to_owned())
    };
    if let Some((key, value)) = term.split_once("!=") {
        return Some(Requirement::NotIn(plain(key)?, vec![plain(value)?]));
    }
    if let Some(key) = term.strip_prefix('!') {
        return Some(Requirement::Missing(plain(key)?));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Some(Requirement::In(plain(key)?, vec![plain(value)?]));
    }
    if let Some((key, bound)) = term.split_once('>') {
        return Some(Requirement::Above(plain(key)?, plain(bound)?.parse().ok()?));
    }
    if let Some((key, bound)) = term.split_once('<') {
        return Some(Requirement::Below(plain(key)?, plain(bound)?.parse().ok()?));
    }
    let Some((head, values)) = term.strip_suffix(')').and_then(|term| term.split_once('(')) else {
        return is_label_key(term).then(|| Requirement::Exists(term.to_owned()));
    };
    let values = values.split(',').map(|value| value.trim().to_owned()).collect();
    match head.split_whitespace().collect::<Vec<_>>().as_slice() {
        [key, "in"] => Some(Requirement::In((*key).to_owned(), values)),
        [key, "notin"] => Some(Requirement::NotIn((*key).to_owned(), values)),
        _ => None,
    }
}

fn split_outside_braces(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    })
    .collect()
}
