//! `diff`

use super::args::{DiffArgs, ModeArgs, PlanFormat, ReviewArgs};
use super::bundle::{BundlePlan, annotated};
use super::console::Console;
use super::database::{Unset, connect, passwords};
use super::saved::SavedPlan;
use super::source::Source;
use super::{DRIFT, Failure, OK, While as _, markdown};
use stanchion_roles::diff::{self, diff};
use stanchion_roles::inspect::{Needs, inspect};
use stanchion_roles::manifest::Strictness;
use stanchion_roles::plan::Plan;
use stanchion_roles::render;
use stanchion_roles::review::{Artifact, MAX_BYTES, Subject};

const IN_SYNC: &str = "No changes needed. Database is in sync with manifest.";
/// How many warnings of other privileges are printed; the rest is counted.
const SHOWN_HOLDINGS: usize = 20;

pub(super) async fn run(
    args: &DiffArgs,
    strictness: Strictness,
    console: &mut Console<'_>,
) -> Result<u8, Failure> {
    check_review(&args.review)?;
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
    let reviewed = write_review(&args.review, &subject, annotated.as_ref());
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
        passwords: passwords(&source.desired, unset, console)?,
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

/// Refuses a label that is a URL, without repeating it: it may contain a password.
fn check_review(args: &ReviewArgs) -> Result<(), Failure> {
    if args
        .target_label
        .as_ref()
        .is_some_and(|label| label.contains("://"))
    {
        return Err(Failure::new(
            "--target-label must be a name such as `staging`, not a connection URL",
        ));
    }
    Ok(())
}

/// Writes the file, if it is requested; returns its fingerprint.
fn write_review(
    args: &ReviewArgs,
    subject: &Subject<'_>,
    bundle: Option<&BundlePlan<'_>>,
) -> Result<Option<String>, Failure> {
    let Some(path) = &args.review_out else {
        return Ok(None);
    };
    let sources = bundle.map(BundlePlan::owners);
    let artifact = Artifact::of(&Subject {
        commit: args.policy_commit.as_deref(),
        target_label: args.target_label.as_deref(),
        executor: args.executor_role.as_deref(),
        sources: sources.as_deref(),
        ..*subject
    });
    let doing = format!("failed to write review artifact to {}", path.display());
    let text = serde_json::to_vec_pretty(&artifact).doing(&doing)?;
    if text.len() > MAX_BYTES {
        return Err(Failure::new(format!(
            "{doing}: it would have {} bytes, and readers take {MAX_BYTES}; split the manifest, or review `--format \
             markdown`",
            text.len()
        )));
    }
    std::fs::write(path, text).doing(&doing)?;
    Ok(Some(artifact.fingerprint().to_owned()))
}
