//! Finds the password, and checks whether the role has it.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use secrecy::{ExposeSecret, SecretString};
use stanchion_api::user::{Encoding, SecretKeyRef};
use stanchion_kernel::problem::Cause;
use stanchion_kernel::redact::SecretValues;
use stanchion_kernel::{Problem, Reader, ambient, apply};
use stanchion_postgres::scram;

use crate::generate;
use crate::setup::Setup;
use crate::user::catalog::Catalog;
use crate::user::passwords::{self, Login, NO_PASSWORD, Passwords};
use crate::user::plan::role::PasswordChange;
use crate::user::rotation::{self, Clock};
use crate::user::target::{Password, PasswordRequest, Wanted};

/// The password before the database is read.
pub enum Source {
    /// A password.
    Given(Box<Given>),
    /// The Secret is missing, but the role has worked before.
    Lost(&'static str, String),
    /// The role has no password.
    None,
}

/// A password and its properties.
pub struct Given {
    password: Password,
    trimmed: bool,
    /// Only for generated passwords.
    clock: Option<Clock>,
}

impl Source {
    /// The names of the two logins, if there are or were two.
    pub fn login_names(&self, wanted: &Wanted) -> Vec<String> {
        let dual = match self {
            Self::Given(given) => given.clock.as_ref().is_some_and(Clock::is_dual),
            Self::Lost(..) | Self::None => false,
        };
        let before = &wanted.before;
        if dual || before.active_login.is_some() || !before.retiring_logins.is_empty() {
            rotation::login_names(&wanted.username).to_vec()
        } else {
            Vec::new()
        }
    }
}

/// Finds the password: in the user's Secret, or in the credentials Secret.
pub async fn source(read: &Reader, wanted: &Wanted, live: Option<&Secret>) -> Result<Source, Problem> {
    match &wanted.password {
        PasswordRequest::None => Ok(Source::None),
        PasswordRequest::From(reference, encoding) => {
            match from_secret(read, reference, *encoding).await {
                Ok(given) => Ok(Source::Given(Box::new(given))),
                // A working role keeps working; only the condition of its password reports what is missing.
                Err(problem)
                    if wanted.before.password_fingerprint.is_some() && problem.is(Cause::PasswordSecret) =>
                {
                    Ok(Source::Lost(problem.reason, problem.message))
                }
                Err(problem) => Err(problem),
            }
        }
        PasswordRequest::Generated(rules, rotation) => {
            let ours = live.filter(|secret| apply::is_owned(&secret.metadata, read.parent()));
            let stored = ours.map(|secret| SecretValues::from((*secret).clone()));
            let current = stored.and_then(|values| values.text("password").ok());
            let clock = rotation::clock(
                wanted,
                rotation,
                ours.map(ResourceExt::annotations),
                ambient::now(),
            );
            let (value, clock) = match current {
                Some(value) if !clock.is_due() => (value, clock),
                Some(_) | None => (generate::password(rules)?, clock.rotated()),
            };
            let password = Password { value, as_is: false };
            Ok(Source::Given(Box::new(Given {
                password,
                trimmed: false,
                clock: Some(clock),
            })))
        }
    }
}

async fn from_secret(read: &Reader, reference: &SecretKeyRef, encoding: Encoding) -> Result<Given, Problem> {
    let SecretKeyRef { name, key } = reference;
    let problem = |reason, message: String| {
        Problem::dependency(reason, message)
            .with_cause(Cause::PasswordSecret)
            .while_doing("cannot read password secret")
    };
    let secret: Secret = read
        .get(name)
        .await?
        .ok_or_else(|| problem("SecretNotFound", format!("secrets {name:?} not found")))?;
    let value = SecretValues::from(secret)
        .text(key)
        .map_err(|error| problem("SecretKeyMissing", format!("secret {name:?} {error}")))?;
    let text = value.expose_secret();
    let kept = text.trim_end_matches(['\n', '\r']);
    if kept.is_empty() {
        return Err(problem(
            "SecretKeyMissing",
            format!("secret {name:?} has an empty value under {key:?}"),
        ));
    }
    if kept.contains('\0') {
        return Err(problem(
            "SecretInvalid",
            format!("secret {name:?} has a NUL byte under {key:?}"),
        ));
    }
    let trimmed = kept.len() != text.len();
    let value = SecretString::from(kept);
    let as_is = encoding == Encoding::Passthrough || scram::encoding(&value) != scram::Encoding::Clear;
    Ok(Given {
        password: Password { value, as_is },
        trimmed,
        clock: None,
    })
}

/// Compares the password with that of the role.
pub fn decide(
    setup: &Setup,
    wanted: &Wanted,
    source: Source,
    catalog: &Catalog,
    logins: Vec<(String, Catalog)>,
) -> Result<Passwords, Problem> {
    let applied = wanted.before.password_fingerprint.as_deref();
    let mut all = match source {
        Source::Lost(reason, message) => Passwords {
            unavailable: Some((reason, message)),
            fingerprint: applied.map(Into::into),
            changed: wanted.before.password_changed,
            ..Passwords::default()
        },
        Source::None => Passwords {
            main: Some(passwords::clear(catalog, applied)),
            fingerprint: Some(NO_PASSWORD.into()),
            ..Passwords::default()
        },
        Source::Given(given) => return decide_given(setup, wanted, &given, catalog, logins),
    };
    all.dual = logins.into_iter().filter_map(retired).collect();
    Ok(all)
}

fn decide_given(
    setup: &Setup,
    wanted: &Wanted,
    given: &Given,
    catalog: &Catalog,
    logins: Vec<(String, Catalog)>,
) -> Result<Passwords, Problem> {
    let applied = wanted.before.password_fingerprint.as_deref();
    let (key, uid) = (&setup.fingerprints, &wanted.identity.uid);
    let new_fingerprint = passwords::fingerprint(&given.password, key, uid, applied);
    let compare = |catalog: &Catalog| {
        passwords::compare(&given.password, catalog, key, uid, applied)
            .map_err(|error| Problem::transient("NoRandomness", error.to_string()))
    };
    // An application cannot log in with a hash.
    let is_clear = scram::encoding(&given.password.value) == scram::Encoding::Clear;
    let mut all = Passwords {
        source_changed: applied != Some(new_fingerprint.as_str()),
        fingerprint: Some(new_fingerprint),
        trimmed: given.trimmed,
        current: is_clear.then(|| given.password.value.clone()),
        changed: wanted.before.password_changed,
        ..Passwords::default()
    };
    if let Some(clock) = &given.clock {
        all.rotated = clock.rotating_since();
        all.changed = clock.changed();
        all.next = clock.next();
        all.terminates = clock.terminates();
        all.request = clock.request();
    }
    let Some(clock) = given.clock.as_ref().filter(|clock| clock.is_dual()) else {
        all.main = Some(compare(catalog)?);
        all.dual = logins.into_iter().filter_map(retired).collect();
        return Ok(all);
    };
    all.main = Some(passwords::clear(catalog, Some(NO_PASSWORD)));
    all.grace_ends = clock.grace_ends();
    all.active = Some(clock.active_login().to_owned());
    for (name, catalog) in logins {
        if name == clock.active_login() {
            all.dual.push(Login {
                change: compare(&catalog)?,
                enabled: true,
                name,
                catalog,
            });
        } else if clock.in_grace() && catalog.role.is_some() {
            all.dual.push(Login {
                change: PasswordChange::Keep,
                enabled: true,
                name,
                catalog,
            });
        } else {
            all.dual.extend(retired((name, catalog)));
        }
    }
    Ok(all)
}

/// An existing login whose grace period has ended.
fn retired((name, catalog): (String, Catalog)) -> Option<Login> {
    catalog.role.is_some().then(|| Login {
        change: passwords::clear(&catalog, Some(NO_PASSWORD)),
        enabled: false,
        name,
        catalog,
    })
}
