//! `diff --review-out`

use super::args::ReviewArgs;
use super::bundle_plan::BundlePlan;
use super::{Failure, While as _};
use crate::review::{Artifact, MAX_BYTES, Subject};

/// Refuses a label that is a URL, without repeating it: it may contain a password.
pub(super) fn check(args: &ReviewArgs) -> Result<(), Failure> {
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
pub(super) fn write(
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
