//! The order of extensions.

use serde_json::json;

use super::fixture::{current, extension, made, wanted};
use crate::user::catalog::Catalog;
use crate::user::catalog::databases::Contents;
use crate::user::plan::differences;

#[test]
fn an_extension_comes_after_what_it_requires() {
    let request = wanted(&json!({
        "databases": [{ "name": "app", "extensions": ["earthdistance", "a_first", "cube", "pgcrypto"] }],
    }));
    let mut catalog = made(150_000);
    catalog.extensions = [
        extension("a_first", &["earthdistance", "plpgsql"]),
        extension("earthdistance", &["cube"]),
        extension("cube", &[]),
        extension("pgcrypto", &[]),
    ]
    .into();
    let mut contents = Contents {
        extensions: ["plpgsql".to_owned()].into(),
        ..Contents::default()
    };
    let there = |contents: &Contents, catalog: Catalog| {
        let there = current(catalog, contents);
        differences(&request, &there.current, &there.passwords)
    };
    let what: Vec<String> = there(&contents, made_like(&catalog))
        .unwrap()
        .into_iter()
        .map(|change| change.what)
        .collect();
    let ordered = [
        "extension cube",
        "extension earthdistance",
        "extension a_first",
        "extension pgcrypto",
    ];
    assert_eq!(what, ordered);
    contents.extensions.clear();
    let problem = there(&contents, catalog).unwrap_err();
    assert_eq!(problem.reason, "ExtensionRequired");
    assert!(problem.message.contains("\"plpgsql\""), "{problem}");
}

/// The same state again: a catalog cannot be copied.
fn made_like(catalog: &Catalog) -> Catalog {
    Catalog {
        extensions: catalog.extensions.clone(),
        ..made(150_000)
    }
}
