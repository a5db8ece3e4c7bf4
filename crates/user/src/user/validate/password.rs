//! Validates the source of the password.

use std::time::Duration;

use kube::ResourceExt;
use stanchion_api::PostgresUser;
use stanchion_api::duration;
use stanchion_api::user::{Rotation, RotationStrategy, annotation};
use stanchion_kernel::Problem;

use super::names::NAME_LIMIT;
use crate::generate;
use crate::user::target::{PasswordRequest, RotationRequest};

/// The source of the password: there must be exactly one.
pub(super) fn password(user: &PostgresUser) -> Result<PasswordRequest, Problem> {
    let spec = &user.spec;
    let password = spec.password.clone().unwrap_or_default();
    let iam = spec.auth.as_ref().and_then(|auth| auth.iam.as_ref());
    let disabled = password.disabled == Some(true);
    let sources = [
        spec.password_secret_ref.is_some(),
        password.generate.is_some(),
        disabled,
        iam.is_some(),
    ];
    if sources.into_iter().filter(|given| *given).count() != 1 {
        return Err(Problem::permanent(
            "InvalidSpec",
            "exactly one of passwordSecretRef, password.generate, password.disabled, auth.iam is required",
        ));
    }
    if password.rotation.is_some() && password.generate.is_none() {
        return Err(Problem::permanent(
            "InvalidSpec",
            "password.rotation needs password.generate (rotate a user-supplied Secret by changing the Secret)",
        ));
    }
    Ok(match (&spec.password_secret_ref, password.generate) {
        (Some(secret), _) => PasswordRequest::From(secret.clone(), password.encoding),
        (None, Some(generate)) => {
            generate::check(&generate)?;
            PasswordRequest::Generated(generate, rotation(user, password.rotation.as_ref())?)
        }
        (None, None) => PasswordRequest::None,
    })
}

fn rotation(user: &PostgresUser, rotation: Option<&Rotation>) -> Result<RotationRequest, Problem> {
    let requested = user.annotations().get(annotation::ROTATE_AT).cloned();
    let Some(rotation) = rotation else {
        return Ok(RotationRequest {
            requested,
            ..RotationRequest::default()
        });
    };
    if rotation.strategy == RotationStrategy::DualUser && user.spec.username.len() + 2 > NAME_LIMIT {
        return Err(Problem::permanent(
            "InvalidSpec",
            "username too long: with DualUser the logins have two characters more, and postgres limit is 63 chars",
        ));
    }
    let every = rotation.interval.as_deref().map(interval).transpose()?;
    if every == Some(Duration::ZERO) {
        let message = "password.rotation.interval must be 1s or longer";
        return Err(Problem::permanent("InvalidSpec", message));
    }
    Ok(RotationRequest {
        interval: every,
        strategy: rotation.strategy,
        grace: interval(&rotation.grace_period)?,
        terminate_sessions: rotation.terminate_sessions,
        at: rotation.at,
        requested,
    })
}

/// A duration of the spec.
pub(super) fn interval(text: &str) -> Result<Duration, Problem> {
    duration::parse(text).ok_or_else(|| {
        Problem::permanent(
            "InvalidSpec",
            format!("{text:?} is not a duration such as 10m or 24h"),
        )
    })
}
