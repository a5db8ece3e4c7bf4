//! The documentation matches the code: every reason of a condition or an event has its row.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;

/// The pages with tables of reasons.
const PAGES: [&str; 5] = [
    "troubleshooting.md",
    "supabase/troubleshooting.md",
    "gitlab/status.md",
    "policy/README.md",
    "postgresuser/README.md",
];
/// Words in these places that are not reasons, each with its meaning.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("ApplicationName", "a parameter of a connection string"),
    ("AuthorizationHeaderMalformed", "an error code of S3"),
    ("AuthorizationQueryParametersError", "an error code of S3"),
    ("BadLuck", "of a table of test cases"),
    ("By", "a unit of OpenTelemetry"),
    ("Fail", "the failure policy of a webhook"),
    ("False", "a status of a condition"),
    ("Ignore", "the failure policy of a webhook"),
    ("IllegalLocationConstraintException", "an error code of S3"),
    ("InternalError", "an error code of S3"),
    ("Keeper", "a kind of object in the sealed marks"),
    ("Normal", "a type of event"),
    ("OAuth", "of an error message"),
    ("Opaque", "a type of Secret"),
    ("OperationAborted", "an error code of S3"),
    ("PermanentRedirect", "an error code of S3"),
    ("PostgreSQL", "of an error message"),
    ("PostgresUser", "a kind"),
    ("Reconcile", "an action of events"),
    ("Redis", "a kind"),
    ("RedisReplication", "a kind"),
    ("RedisSentinel", "a kind"),
    ("RequestTimeout", "an error code of S3"),
    ("ServiceUnavailable", "an error code of S3"),
    ("SlowDown", "an error code of S3"),
    ("Throttled", "of a table of test cases"),
    ("True", "a status of a condition"),
    ("Unknown", "a status of a condition"),
    ("Warning", "a type of event"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file below a folder that ends like this.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.to_str().is_some_and(|path| path.ends_with(ending)) {
            found.push(path);
        }
    }
}

/// The patterns of reasons in the code.
fn places() -> Vec<Regex> {
    const WORD: &str = r#""([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)""#;
    [
        r"(?:Problem|Self)::(?:transient|dependency|human|permanent)\(\s*WORD",
        r#"Problem::new\(\s*[^")]{0,60}?WORD"#,
        r"with_reason\(\s*WORD",
        r"Obstacle::\w+\(\s*WORD",
        r"Truth::\w+,\s*WORD",
        r"EventRecord::\w+\(\s*WORD",
        r"Class::\w+,\s*WORD",
        r"\(\s*class,\s*WORD",
        r"\breason(?:: | = |\.unwrap_or\()WORD",
        r"\bidle_reason(?:: | = )WORD",
        r"const \w+: &str = WORD",
        r"=> (?:return )?WORD,",
        r"\{ WORD \}",
        r"WORD\.into\(\),",
        // Tables: a reason after the value that it belongs to, or before a sentence; and a list of reasons.
        r"Reason::\w+,\s*WORD",
        r#",\s*WORD,\s*"[A-Z][^"]* [^"]*""#,
        r"(?m)^    WORD,$",
        r"\b(?:problem|held|blocked_as|pending|failed)\(\s*WORD",
        r#"\(\s*WORD,\s*(?:""|String|format|message|words|overview|"[a-z])"#,
    ]
    .iter()
    .map(|place| Regex::new(&place.replace("WORD", WORD)).unwrap())
    .collect()
}

/// The code of the kernel and of the crates with a controller, which write conditions and events, without its tests.
fn sources() -> Vec<(PathBuf, String)> {
    let mut sources = Vec::new();
    for folder in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = folder.unwrap().path();
        let mut found = Vec::new();
        files(&folder.join("src"), ".rs", &mut found);
        let has_controller = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            text.contains("impl Reconciler for ")
        };
        if folder.ends_with("kernel") || found.iter().any(has_controller) {
            sources.append(&mut found);
        }
    }
    let of_tests = |path: &Path| {
        path.components()
            .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
    };
    sources.retain(|path| !of_tests(path));
    let code = sources.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        (path, code.unwrap_or_default().to_owned())
    });
    code.collect()
}

/// The reasons in the code, each with a file that has it.
fn reasons() -> BTreeMap<String, PathBuf> {
    let places = places();
    let mut found = BTreeMap::new();
    for (path, code) in sources() {
        for place in &places {
            for word in place.captures_iter(&code) {
                found.entry(word[1].to_owned()).or_insert_with(|| path.clone());
            }
        }
    }
    found
}

#[test]
fn every_reason_has_its_row() {
    let mut rows = String::new();
    for page in PAGES {
        let text = std::fs::read_to_string(root().join("docs").join(page)).unwrap();
        for row in text.lines().filter(|line| line.starts_with('|')) {
            rows.push_str(row);
            rows.push('\n');
        }
    }
    let reasons = reasons();
    assert!(reasons.len() > 150, "{}", reasons.len());
    let other: BTreeSet<&str> = OTHER_WORDS.iter().map(|(word, _)| *word).collect();
    let missing: Vec<String> = reasons
        .iter()
        .filter(|(reason, _)| !other.contains(reason.as_str()) && !rows.contains(&format!("`{reason}`")))
        .map(|(reason, path)| format!("{reason} ({})", path.display()))
        .collect();
    assert!(
        missing.is_empty(),
        "these reasons have no row in docs/troubleshooting.md or on the page of their kind: {missing:#?}"
    );
}

/// A reason that the operator no longer has would make Argo CD report a failure at once.
#[test]
fn the_health_checks_of_argo_cd_know_only_reasons_of_the_code() {
    let mut scripts = Vec::new();
    files(&root().join("deploy/argocd"), ".lua", &mut scripts);
    let entry = Regex::new(r"(?m)^  (\w+) = true,$").unwrap();
    let sources = sources();
    for script in scripts {
        let text = std::fs::read_to_string(&script).unwrap();
        let mut entries = entry.captures_iter(&text).peekable();
        assert!(entries.peek().is_some(), "{}", script.display());
        for reason in entries.map(|found| found[1].to_owned()) {
            // A text, or the variant of an enum of reasons.
            let word = Regex::new(&format!(r#""{reason}"|Reason::{reason}\b"#)).unwrap();
            assert!(
                sources.iter().any(|(_, code)| word.is_match(code)),
                "{}: {reason}",
                script.display()
            );
        }
    }
}

/// The anchor of a heading, as GitHub and mdbook make it.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            character if character.is_alphanumeric() => Some(character),
            _ => None,
        })
        .collect()
}

/// The anchors of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let link = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let mut found = BTreeSet::new();
    let mut code = false;
    for line in text.lines() {
        code ^= line.trim_start().starts_with("```");
        if !code && line.starts_with('#') {
            found.insert(anchor(&link.replace_all(line.trim_start_matches('#'), "$1")));
        }
        if let Some((_, rest)) = line.split_once("<a id=\"") {
            found.insert(rest.split('"').next().unwrap_or_default().to_owned());
        }
    }
    found
}

#[test]
fn every_link_to_a_section_leads_to_one() {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    files(&root().join("docs"), ".md", &mut pages);
    let link = Regex::new(r"\]\(([^)#\s:]*)#([^)\s]+)\)").unwrap();
    let mut broken = Vec::new();
    for page in &pages {
        let text = std::fs::read_to_string(page).unwrap();
        for found in link.captures_iter(&text) {
            let target = if found[1].is_empty() {
                page.clone()
            } else {
                page.parent().unwrap().join(&found[1])
            };
            let there = std::fs::read_to_string(&target).map(|text| anchors(&text));
            if !there.is_ok_and(|there| there.contains(&found[2])) {
                broken.push(format!("{}: {}#{}", page.display(), &found[1], &found[2]));
            }
        }
    }
    assert!(broken.is_empty(), "no such section: {broken:#?}");
}
