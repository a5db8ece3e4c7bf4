//! `graph`

use super::args::{GraphArgs, GraphCommand, GraphFormat, GraphOutput, GraphScope};
use super::console::Console;
use super::database::connect;
use super::source::Source;
use super::{Failure, OK, While as _};
use stanchion_roles::graph::{self, Graph};
use stanchion_roles::inspect::{Needs, inspect, inspect_everything};
use stanchion_roles::manifest::Strictness;

pub(super) async fn run(
    args: &GraphArgs,
    strictness: Strictness,
    console: &mut Console<'_>,
) -> Result<u8, Failure> {
    match &args.what {
        GraphCommand::Desired { source, output } => {
            let source = Source::read(source, strictness, console)?;
            let mut graph = graph::desired(&source.desired);
            scoped(&mut graph, &source);
            write(&graph, output, console)
        }
        GraphCommand::Current {
            source,
            database,
            scope: GraphScope::All,
            output,
        } => {
            if source.file.is_some() || source.bundle.is_some() {
                return Err(Failure::new(
                    "--scope all draws everything: leave out --file and --bundle",
                ));
            }
            let mut session = connect(database, console).await?;
            let facts = inspect_everything(&mut session)
                .await
                .doing("failed to inspect database state")?;
            write(&graph::current(&facts), output, console)
        }
        GraphCommand::Current {
            source,
            database,
            scope: GraphScope::Managed,
            output,
        } => {
            if source.file.is_none() && source.bundle.is_none() {
                return Err(Failure::new(
                    "--file or --bundle is required when --scope=managed; --scope all draws everything",
                ));
            }
            let source = Source::read(source, strictness, console)?;
            let mut session = connect(database, console).await?;
            let facts = inspect(&mut session, &Needs::of(&source.desired))
                .await
                .doing("failed to inspect database state")?;
            let mut graph = graph::current(&facts);
            scoped(&mut graph, &source);
            write(&graph, output, console)
        }
    }
}

fn scoped(graph: &mut Graph, source: &Source) {
    graph.meta.managed_scope = source
        .bundle
        .as_ref()
        .map(|bundle| (&bundle.composed.scope).into());
}

fn write(graph: &Graph, output: &GraphOutput, console: &mut Console<'_>) -> Result<u8, Failure> {
    let mut text = match output.format {
        GraphFormat::Tree => graph::tree(graph),
        GraphFormat::Json => graph::json(graph),
        GraphFormat::Dot => graph::dot(graph),
        GraphFormat::Mermaid => graph::mermaid(graph),
    };
    if let (GraphFormat::Tree, Some(scope)) = (output.format, &graph.meta.managed_scope) {
        text = format!("{}{text}", super::inspect::scope_lines(scope));
    }
    match &output.output {
        Some(path) => std::fs::write(path, text).doing(format_args!("failed to write {}", path.display()))?,
        None => console.print(&text),
    }
    Ok(OK)
}
