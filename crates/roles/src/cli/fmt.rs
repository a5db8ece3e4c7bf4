//! `fmt`

use super::args::FmtArgs;
use super::console::Console;
use super::{DRIFT, Failure, OK, While as _};
use crate::generate::to_yaml;
use crate::manifest::{Strictness, load};

pub(super) fn run(args: &FmtArgs, strictness: Strictness, console: &mut Console<'_>) -> Result<u8, Failure> {
    let path = args.file.display();
    let text =
        std::fs::read_to_string(&args.file).doing(format_args!("failed to read manifest file {path}"))?;
    let loaded = load(&text, strictness).doing(&path)?;
    if text.contains("apiVersion:") {
        return Err(Failure::new(format!(
            "{path} is a Kubernetes object; only plain manifests are rewritten"
        )));
    }
    let formatted = to_yaml(&loaded.value).doing("failed to write the manifest")?;
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
