//! `generate`

use super::args::GenerateArgs;
use super::console::Console;
use super::database::connect;
use super::{Failure, OK, While as _};
use crate::generate::{generate, suggest_profiles, to_yaml};
use crate::inspect::inspect_everything;

pub(super) async fn run(args: &GenerateArgs, console: &mut Console<'_>) -> Result<u8, Failure> {
    let mut session = connect(&args.database, console).await?;
    let facts = inspect_everything(&mut session)
        .await
        .doing("failed to inspect database state")?;
    session.close().await;
    let mut manifest = generate(&facts);
    if args.suggest_profiles {
        manifest = suggest_profiles(&manifest, &facts, args.suggest_min_schemas);
    }
    let yaml = to_yaml(&manifest).doing("failed to write the manifest")?;
    match &args.output {
        Some(path) => std::fs::write(path, yaml).doing(format_args!("failed to write {}", path.display()))?,
        None => console.print(&yaml),
    }
    Ok(OK)
}
