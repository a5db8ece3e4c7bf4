//! `apply`

use std::io::Write as _;

use super::args::ApplyArgs;
use super::console::Console;
use super::database::{Unset, connect, passwords};
use super::diff::{options, remark};
use super::saved::SavedPlan;
use super::source::Source;
use super::{Failure, OK, While as _};
use stanchion_roles::apply::{self, apply};
use stanchion_roles::diff::{self, diff};
use stanchion_roles::expand::Desired;
use stanchion_roles::inspect::{Needs, inspect};
use stanchion_roles::manifest::Strictness;
use stanchion_roles::render;

pub(super) async fn run(
    args: &ApplyArgs,
    strictness: Strictness,
    console: &mut Console<'_>,
) -> Result<u8, Failure> {
    let (desired, options, saved) = intent(args, strictness, console)?;
    let mut session = connect(&args.database, console).await?;
    if let Some(saved) = saved
        .as_ref()
        .filter(|saved| saved.database != session.identity().to_string())
    {
        return Err(Failure::new(format!(
            "the plan was made for database {}, and this is {}",
            saved.database,
            session.identity()
        )));
    }
    if args.dry_run {
        let facts = inspect(&mut session, &Needs::of(&desired))
            .await
            .doing("failed to inspect database state")?;
        let plan = diff(&desired, &facts, &options).doing("failed to inspect database state")?;
        remark(&plan, console);
        if plan.is_empty() {
            console.print("No changes needed. Database is in sync with manifest.\n");
        } else {
            console.print(&format!(
                "-- DRY RUN: the following SQL would be executed:\n\n{}\n",
                render::script(&plan)
            ));
            console.error(&format!("\n{}", plan.summary().render("Plan")));
        }
        for blocker in &plan.blockers {
            console.warn(&format!("apply would refuse this plan: {blocker}"));
        }
        return Ok(OK);
    }
    let progress = console
        .shows_progress()
        .then_some(&bar as &(dyn Fn(usize, usize) + Send + Sync));
    let expected = saved.map(|saved| saved.digest);
    let options = apply::Options {
        diff: options,
        expected,
        progress,
        ..apply::Options::default()
    };
    let applied = apply(&mut session, &desired, &options).await;
    session.close().await;
    let plan = match applied {
        Ok(plan) => plan,
        Err(error) => {
            if let apply::Error::Blocked(plan) | apply::Error::Moved(plan) = &error {
                remark(plan, console);
            }
            return Err(Failure::new(error.to_string()));
        }
    };
    remark(&plan, console);
    if plan.is_empty() {
        console.print("No changes needed. Database is in sync with manifest.\n");
    } else {
        let summary = plan.summary();
        let table = console.paint().summary(&summary, "Applied");
        console.print(&format!(
            "Applied {} change(s) successfully.\n{table}",
            summary.total()
        ));
        if console.is_verbose() {
            let statements = plan
                .changes
                .iter()
                .flat_map(|change| render::display(change, &plan));
            statements.for_each(|statement| console.error(&format!("executed: {statement}")));
        }
    }
    Ok(OK)
}

/// The source of the changes: a manifest, a bundle, or a saved plan.
fn intent(
    args: &ApplyArgs,
    strictness: Strictness,
    console: &mut Console<'_>,
) -> Result<(Desired, diff::Options, Option<SavedPlan>), Failure> {
    let Some(path) = &args.plan else {
        let source = Source::read(&args.source, strictness, console)?;
        let options = options(&args.mode, &source, Unset::Fails, console)?;
        return Ok((source.desired, options, None));
    };
    let saved = SavedPlan::read(path)?;
    let desired = saved.desired();
    let options = diff::Options {
        mode: saved.mode()?,
        allow_schema_owner_transfers: saved.allows_schema_owner_transfers(),
        passwords: passwords(&desired, Unset::Fails, console)?,
    };
    Ok((desired, options, Some(saved)))
}

/// A progress bar on the terminal, redrawn in place.
fn bar(done: usize, total: usize) {
    const WIDTH: usize = 30;
    let filled = (done * WIDTH).checked_div(total).unwrap_or(WIDTH);
    let end = if done == total { "\n" } else { "" };
    let bar = format!(
        "\r[{}{}] {done}/{total} statements{end}",
        "=".repeat(filled),
        " ".repeat(WIDTH - filled)
    );
    let mut terminal = std::io::stderr().lock();
    let _ = terminal.write_all(bar.as_bytes()).and_then(|()| terminal.flush());
}
