//! Commands about manifests: `validate`, `fmt`, `generate`.

use std::fmt::Write as _;

use super::args::{FmtArgs, GenerateArgs, SourceArgs};
use super::console::Console;
use super::database::connect;
use super::source::Source;
use super::{DRIFT, Failure, OK, While as _};
use stanchion_roles::generate;
use stanchion_roles::inspect::inspect_everything;
use stanchion_roles::manifest::{Strictness, load};

pub(super) fn validate(
    args: &SourceArgs,
    strictness: Strictness,
    console: &mut Console<'_>,
) -> Result<u8, Failure> {
    let source = Source::read(args, strictness, console)?;
    let counts = &source.desired.counts;
    let mut text = match &source.bundle {
        Some(bundle) => format!(
            "Policy bundle is valid.\n  {} source document(s) loaded\n  {} shared profile(s) defined\n",
            bundle.sources.len(),
            bundle.shared_profiles
        ),
        None => "Manifest is valid.\n".to_owned(),
    };
    for (count, what) in [
        (counts.schemas, "schema"),
        (counts.roles, "role"),
        (counts.grants, "grant"),
        (counts.default_privileges, "default privilege"),
        (counts.memberships, "membership"),
    ] {
        let _ = writeln!(text, "  {count} {what}(s) defined");
    }
    console.print(&text);
    Ok(OK)
}

pub(super) async fn generate(args: &GenerateArgs, console: &mut Console<'_>) -> Result<u8, Failure> {
    let mut session = connect(&args.database, console).await?;
    let facts = inspect_everything(&mut session)
        .await
        .doing("failed to inspect database state")?;
    session.close().await;
    let mut manifest = generate::generate(&facts);
    if args.suggest_profiles {
        manifest = generate::suggest_profiles(&manifest, &facts, args.suggest_min_schemas);
    }
    let yaml = generate::to_yaml(&manifest).doing("failed to write the manifest")?;
    match &args.output {
        Some(path) => std::fs::write(path, yaml).doing(format_args!("failed to write {}", path.display()))?,
        None => console.print(&yaml),
    }
    Ok(OK)
}

pub(super) fn fmt(args: &FmtArgs, strictness: Strictness, console: &mut Console<'_>) -> Result<u8, Failure> {
    let path = args.file.display();
    let text =
        std::fs::read_to_string(&args.file).doing(format_args!("failed to read manifest file {path}"))?;
    let loaded = load(&text, strictness).doing(&path)?;
    if text.contains("apiVersion:") {
        return Err(Failure::new(format!(
            "{path} is a Kubernetes object; only plain manifests are rewritten"
        )));
    }
    let formatted = generate::to_yaml(&loaded.value).doing("failed to write the manifest")?;
    if formatted == text {
        return Ok(OK);
    }
    if args.check {
        console.error(&format!("{path} is not in the canonical form"));
        return Ok(DRIFT);
    }
    if has_comments(&text) && !args.drop_comments {
        return Err(Failure::new(format!(
            "{path} has comments, which would be lost; --drop-comments rewrites it all the same"
        )));
    }
    std::fs::write(&args.file, formatted).doing(format_args!("failed to write {path}"))?;
    console.error(&format!("{path} rewritten"));
    Ok(OK)
}

/// Whether the text has a `#` at the beginning of a line or after a space, outside of quotes.
fn has_comments(text: &str) -> bool {
    text.lines().any(|line| {
        let mut quote = None;
        let mut before = ' ';
        line.chars().any(|c| {
            let comment = c == '#' && quote.is_none() && before.is_whitespace();
            quote = match quote {
                None if matches!(c, '"' | '\'') => Some(c),
                Some(open) if open == c => None,
                same => same,
            };
            before = c;
            comment
        })
    })
}

#[cfg(test)]
mod tests {
    use super::has_comments;

    #[test]
    fn comments_are_not_hashes_in_values() {
        assert!(has_comments("a: 1 # why"));
        assert!(has_comments("# why\na: 1"));
        assert!(!has_comments("a: 'x # y'\nb: c#d"));
    }
}
