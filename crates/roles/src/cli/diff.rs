//! `diff`

use super::args::{DiffArgs, ModeArgs, PlanFormat};
use super::bundle_plan::{BundlePlan, annotated};
use super::console::Console;
use super::database::connect;
use super::passwords::{self, Unset};
use super::saved::SavedPlan;
use super::source::Source;
use super::{DRIFT, Failure, OK, While as _, markdown, review};
use crate::diff::{self, diff};
use crate::inspect::{Needs, inspect};
use crate::manifest::Strictness;
use crate::plan::Plan;
use crate::render;
use crate::review::Subject;

const IN_SYNC: &str = "No changes needed. Database is in sync with manifest.";
/// How many warnings of other privileges are printed; the rest is counted.
const SHOWN_HOLDINGS: usize = 20;

pub(super) async fn run(
    args: &DiffArgs,
    strictness: Strictness,
    console: &mut Console<'_>,
) -> Result<u8, Failure> {
    review::check(&args.review)?;
    let source = Source::read(&args.source, strictness, console)?;
    let unset = match args.format {
        PlanFormat::Markdown => Unset::Planned,
        _ => Unset::Fails,
    };
    let options = options(&args.mode, &source, unset, console)?;
    let mut session = connect(&args.database, console).await?;
    let mut facts = inspect(&mut session, &Needs::of(&source.desired))
        .await
        .doing("failed to inspect database state")?;
    let plan = diff(&source.desired, &facts, &options).doing("failed to inspect database state")?;
    let server = std::mem::take(&mut facts.server);
    drop(facts);
    remark(&plan, console);
    for blocker in &plan.blockers {
        console.warn(&format!("apply would refuse this plan: {blocker}"));
    }
    if let Some(path) = &args.save_plan {
        SavedPlan::new(&plan, session.identity().to_string(), &source, &options).write(path)?;
    }
    session.close().await;
    let annotated = source.bundle.as_ref().map(|bundle| annotated(&plan, bundle));
    let subject = Subject {
        plan: &plan,
        desired: &source.desired,
        mode: options.mode,
        server: &server,
        policy: &source.policy,
        captured_at: &jiff::Timestamp::now().to_string(),
        commit: None,
        target_label: None,
        executor: None,
        sources: None,
    };
    let reviewed = review::write(&args.review, &subject, annotated.as_ref());
    let fingerprint = reviewed.as_ref().ok().and_then(Option::as_deref);
    show(&plan, args.format, annotated.as_ref(), fingerprint, console)?;
    if let (Some(path), Some(fingerprint)) = (&args.review.review_out, reviewed?) {
        console.error(&format!(
            "Recorded review written to {} (review fingerprint {fingerprint})",
            path.display()
        ));
    }
    let drift = plan.summary().has_drift();
    Ok(if drift && !args.no_exit_code { DRIFT } else { OK })
}

/// Options of the comparison, with the passwords from the environment.
pub(super) fn options(
    args: &ModeArgs,
    source: &Source,
    unset: Unset,
    console: &mut Console<'_>,
) -> Result<diff::Options, Failure> {
    Ok(diff::Options {
        mode: args.mode.into(),
        allow_schema_owner_transfers: args.allow_schema_owner_transfers,
        passwords: passwords::resolve(&source.desired, unset, console)?,
    })
}

/// Prints warnings and blockers of the plan.
pub(super) fn remark(plan: &Plan, console: &mut Console<'_>) {
    for warning in &plan.warnings {
        console.warn(warning);
    }
    for holding in plan.holdings.iter().take(SHOWN_HOLDINGS) {
        console.warn(holding);
    }
    if let Some(more) = plan
        .holdings
        .len()
        .checked_sub(SHOWN_HOLDINGS)
        .filter(|more| *more > 0)
    {
        console.warn(&format!(
            "{more} more privilege(s) or membership(s) that the manifest does not manage"
        ));
    }
}

fn show(
    plan: &Plan,
    format: PlanFormat,
    bundle: Option<&BundlePlan<'_>>,
    fingerprint: Option<&str>,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let summary = plan.summary();
    match format {
        PlanFormat::Sql if plan.is_empty() => console.print(&format!("-- {IN_SYNC}\n")),
        PlanFormat::Sql => {
            let script = console.paint().script(render::script(plan));
            console.print(&script);
            if console.is_terminal() {
                console.print("\n");
            }
            console.error(&format!("\n{}", summary.render("Plan")));
        }
        PlanFormat::Summary if plan.is_empty() => console.print(&format!("{IN_SYNC}\n")),
        PlanFormat::Summary => {
            let text = console.paint().summary(&summary, "Plan");
            console.print(&text);
        }
        PlanFormat::Json => {
            let text = match bundle {
                Some(bundle) => serde_json::to_string_pretty(bundle),
                None => serde_json::to_string_pretty(&plan.changes),
            };
            console.print(&format!("{}\n", text.doing("failed to write the plan")?));
        }
        PlanFormat::Markdown => {
            let sources = bundle.map(BundlePlan::documents);
            console.print(&markdown::table(plan, sources.as_deref(), fingerprint));
        }
    }
    Ok(())
}
