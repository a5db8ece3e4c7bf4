//! `render-bundle`

use std::fmt::Write as _;

use super::args::RenderBundleArgs;
use super::console::Console;
use super::source::LoadedBundle;
use super::{DRIFT, Failure, Name, OK, While as _};
use crate::generate::to_yaml;
use crate::manifest::Strictness;

pub(super) fn run(
    args: &RenderBundleArgs,
    strictness: Strictness,
    name: Name,
    console: &mut Console<'_>,
) -> Result<u8, Failure> {
    let bundle = LoadedBundle::read(&args.bundle, strictness, console)?;
    let mut text = if args.no_header {
        String::new()
    } else {
        header(args, name, &bundle)
    };
    text.push_str(&to_yaml(&bundle.composed.manifest).doing("failed to write the manifest")?);
    if let Some(path) = &args.check {
        let existing =
            std::fs::read_to_string(path).doing(format_args!("failed to read {}", path.display()))?;
        if without_header(&existing) != without_header(&text) {
            console.error(&format!("rendered bundle differs from {}", path.display()));
            return Ok(DRIFT);
        }
        return Ok(OK);
    }
    match &args.output {
        Some(path) => std::fs::write(path, text).doing(format_args!("failed to write {}", path.display()))?,
        None => console.print(&text),
    }
    Ok(OK)
}

/// Removes the header, which is not compared, because pgroles' header differs.
fn without_header(text: &str) -> &str {
    let header = text
        .split_inclusive('\n')
        .take_while(|line| line.starts_with('#'))
        .map(str::len)
        .sum();
    text.get(header..).unwrap_or_default()
}

/// Names files without their folders, so that the text is the same on every machine.
fn header(args: &RenderBundleArgs, name: Name, bundle: &LoadedBundle) -> String {
    let file = args
        .bundle
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let command = match name {
        Name::Stanchion => "stanchion roles",
        Name::Pgroles => "pgroles",
    };
    let mut text = format!(
        "# Rendered by `{command} render-bundle`. Do not edit: render it again.\n# Source bundle: {file}\n# Fragments:\n"
    );
    for source in &bundle.sources {
        let name = source
            .document
            .policy
            .name
            .as_ref()
            .map(|name| format!(" ({name})"))
            .unwrap_or_default();
        let _ = writeln!(text, "#   - {}{name}", source.file);
    }
    text.push_str("#\n");
    text
}
