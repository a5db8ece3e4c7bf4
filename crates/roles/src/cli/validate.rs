//! `validate`

use std::fmt::Write as _;

use super::args::SourceArgs;
use super::console::Console;
use super::source::Source;
use super::{Failure, OK};
use crate::manifest::Strictness;

pub(super) fn run(
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
