//! The password of a role: where it comes from, whether the role has it, and what to change.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use stanchion_api::user::Generate;
use stanchion_kernel::redact::{FingerprintKey, Verdict};
use stanchion_kernel::{Inputs, Problem};
use stanchion_postgres::scram::{self, Encoding};

use super::catalog::{Catalog, RoleFacts, Stored};
use super::rotation::{self, Clock};
use super::target::{Password, RotationRequest, Wanted};
use crate::generate;

/// The field that a fingerprint is bound to, so that it cannot be moved to another.
const FIELD: &str = "password";

/// What the Secrets say about the password.
pub enum Source {
    /// A key of the user's Secret, and whether a trailing line break was removed from its value.
    Given(Password, bool),
    /// The operator generates it.
    Generated(Box<Generated>),
    /// The Secret is missing, but the role has worked before: the reason and the message.
    Lost(&'static str, String),
    /// The role has no password.
    None,
}

/// A generated password, as far as there is one.
pub struct Generated {
    /// The rules for its characters.
    pub rules: Generate,
    /// When it is replaced.
    pub rotation: RotationRequest,
    /// The value in the credentials Secret.
    pub stored: Option<SecretString>,
    /// The annotations of that Secret, which record the rotation.
    pub annotations: Option<BTreeMap<String, String>>,
}

impl Generated {
    fn clock(&self, wanted: &Wanted, now: Timestamp) -> Clock {
        rotation::clock(wanted, &self.rotation, self.annotations.as_ref(), now)
    }

    /// The stored password, unless another one is due.
    fn current(&self, clock: &Clock) -> Option<Password> {
        let stored = self.stored.clone().filter(|_| !clock.is_due());
        stored.map(|value| Password { value, as_is: false })
    }
}

/// The change of a password.
#[derive(Clone, Debug)]
pub enum PasswordChange {
    /// No change.
    Keep,
    /// Set it to this verifier.
    Set(SecretString),
    /// Remove it.
    Clear,
}

/// The state of the role's passwords.
#[derive(Default)]
pub struct Passwords {
    /// The change of the role itself, if it logs in with a password.
    pub main: Option<PasswordChange>,
    /// The two logins of `DualUser`.
    pub dual: Vec<Login>,
    /// The password for the application, if it is known.
    pub current: Option<SecretString>,
    /// The fingerprint after this reconcile.
    pub fingerprint: Option<String>,
    /// The Secret is gone while the role works: reported in a condition, and nothing else happens.
    pub unavailable: Option<(&'static str, String)>,
    /// Whether a trailing line break was removed from the value.
    pub trimmed: bool,
    /// When a new password was generated, if it is not set yet.
    pub rotated: Option<Timestamp>,
    /// When the current password was set.
    pub changed: Option<Timestamp>,
    /// When the next one is due.
    pub next: Option<Timestamp>,
    /// When a login's grace period ends.
    pub grace_ends: Option<Timestamp>,
    /// The login to use, if there are two.
    pub active: Option<String>,
    /// The last request for a new password that was fulfilled.
    pub request: Option<String>,
    /// Whether the value differs from the last applied one.
    pub source_changed: bool,
    /// Whether sessions end with the password that opened them.
    pub terminates: bool,
}

/// One of two alternating logins.
pub struct Login {
    pub name: String,
    /// The role as it is.
    pub catalog: Arc<Catalog>,
    /// Whether it may log in now.
    pub enabled: bool,
    /// The change of its password.
    pub change: PasswordChange,
}

impl Passwords {
    /// Whether two logins alternate.
    pub fn is_dual(&self) -> bool {
        self.active.is_some()
    }

    /// The state after all changes are applied.
    #[must_use]
    pub fn without_changes(&self) -> Self {
        Self {
            active: self.active.clone(),
            ..Self::default()
        }
    }

    pub fn logins(&self) -> &[Login] {
        &self.dual
    }

    /// The change of the role itself.
    pub fn main_change(&self) -> PasswordChange {
        self.main.clone().unwrap_or(PasswordChange::Keep)
    }

    /// Whether any password is to be set.
    pub fn is_changing(&self) -> bool {
        let sets = |change: &PasswordChange| matches!(change, PasswordChange::Set(_));
        self.main.as_ref().is_some_and(sets) || self.dual.iter().any(|login| sets(&login.change))
    }

    /// Logins that could log in until now, and whose grace period has ended.
    pub fn retiring(&self) -> impl Iterator<Item = &Login> {
        self.dual.iter().filter(|login| {
            let could = |role: &RoleFacts| role.login;
            !login.enabled && login.catalog.role.as_ref().is_some_and(could)
        })
    }

    /// Whether a password or a login changes on request, which is not drift.
    pub fn is_moving(&self) -> bool {
        self.rotated.is_some()
            || (self.is_changing() && self.source_changed)
            || self.retiring().next().is_some()
    }
}

/// The roles of a request, as they are: the role itself, and its two logins if it has them.
#[derive(Clone, Copy)]
pub struct Roles<'a> {
    /// The role.
    pub main: &'a Catalog,
    /// The logins, by name.
    pub logins: &'a [(String, Arc<Catalog>)],
}

/// Compares the password with that of the role. A new password, and the salt of a verifier, come from `inputs`.
pub(super) fn decide(
    wanted: &Wanted,
    source: &Source,
    roles: Roles<'_>,
    inputs: &mut Inputs<'_>,
) -> Result<Passwords, Problem> {
    let applied = wanted.before.password_fingerprint.as_deref();
    let retired_logins = || roles.logins.iter().filter_map(retired).collect();
    match source {
        Source::Lost(reason, message) => Ok(Passwords {
            unavailable: Some((*reason, message.clone())),
            fingerprint: applied.map(Into::into),
            changed: wanted.before.password_changed,
            dual: retired_logins(),
            ..Passwords::default()
        }),
        Source::None => Ok(Passwords {
            main: Some(clear(roles.main, applied)),
            fingerprint: Some(NO_PASSWORD.into()),
            dual: retired_logins(),
            ..Passwords::default()
        }),
        Source::Given(password, trimmed) => Ok(Passwords {
            main: Some(LastSet::of(wanted, roles.main).compare(password, roles.main, inputs)),
            changed: wanted.before.password_changed,
            trimmed: *trimmed,
            dual: retired_logins(),
            ..with_value(wanted, password, roles.main)
        }),
        Source::Generated(generated) => {
            let clock = generated.clock(wanted, inputs.now);
            let (password, clock) = if let Some(password) = generated.current(&clock) {
                (password, clock)
            } else {
                let value = generate::password(&generated.rules, inputs.random)?;
                (Password { value, as_is: false }, clock.rotated())
            };
            Ok(of_generated(wanted, &password, &clock, roles, inputs))
        }
    }
}

/// Whether the role lacks the password that it should have. It decides by what was read only, for a reconcile that
/// failed before it had a plan.
pub(super) fn is_pending(wanted: &Wanted, source: &Source, roles: Roles<'_>, now: Timestamp) -> bool {
    let applied = LastSet::of(wanted, roles.main);
    match source {
        Source::Lost(..) | Source::None => false,
        Source::Given(password, _) => !applied.is_set(password, roles.main),
        Source::Generated(generated) => {
            let clock = generated.clock(wanted, now);
            let Some(password) = generated.current(&clock) else {
                return true;
            };
            let mut logins = roles.logins.iter();
            let owner = if clock.is_dual() {
                let active = logins.find(|(name, _)| name == clock.active_login());
                active.map(|(_, catalog)| &**catalog)
            } else {
                Some(roles.main)
            };
            owner.is_none_or(|owner| !applied.is_set(&password, owner))
        }
    }
}

/// What follows from the value alone.
fn with_value(wanted: &Wanted, password: &Password, catalog: &Catalog) -> Passwords {
    let applied = LastSet::of(wanted, catalog);
    let fingerprint = applied.next(password);
    // An application cannot log in with a hash.
    let is_clear = scram::encoding(&password.value) == Encoding::Clear;
    Passwords {
        source_changed: applied.fingerprint != Some(fingerprint.as_str()),
        fingerprint: Some(fingerprint),
        current: is_clear.then(|| password.value.clone()),
        ..Passwords::default()
    }
}

fn of_generated(
    wanted: &Wanted,
    password: &Password,
    clock: &Clock,
    roles: Roles<'_>,
    inputs: &mut Inputs<'_>,
) -> Passwords {
    let applied = LastSet::of(wanted, roles.main);
    let mut all = Passwords {
        rotated: clock.rotating_since(),
        changed: clock.changed(),
        next: clock.next(),
        terminates: clock.terminates(),
        request: clock.request(),
        ..with_value(wanted, password, roles.main)
    };
    if !clock.is_dual() {
        all.main = Some(applied.compare(password, roles.main, inputs));
        all.dual = roles.logins.iter().filter_map(retired).collect();
        return all;
    }
    all.main = Some(clear(roles.main, Some(NO_PASSWORD)));
    all.grace_ends = clock.grace_ends();
    all.active = Some(clock.active_login().to_owned());
    for login in roles.logins {
        let (name, catalog) = login;
        let change = if name == clock.active_login() {
            applied.compare(password, catalog, inputs)
        } else if clock.in_grace() && catalog.role.is_some() {
            PasswordChange::Keep
        } else {
            all.dual.extend(retired(login));
            continue;
        };
        all.dual.push(Login {
            change,
            enabled: true,
            name: name.clone(),
            catalog: Arc::clone(catalog),
        });
    }
    all
}

/// An existing login whose grace period has ended.
fn retired((name, catalog): &(String, Arc<Catalog>)) -> Option<Login> {
    catalog.role.is_some().then(|| Login {
        change: clear(catalog, Some(NO_PASSWORD)),
        enabled: false,
        name: name.clone(),
        catalog: Arc::clone(catalog),
    })
}

/// The last password that was set.
struct LastSet<'a> {
    key: &'a FingerprintKey,
    uid: &'a str,
    fingerprint: Option<&'a str>,
}

impl<'a> LastSet<'a> {
    fn of(wanted: &'a Wanted, catalog: &'a Catalog) -> Self {
        Self {
            key: catalog.viewer.marks.key(),
            uid: &wanted.identity.uid,
            fingerprint: wanted.before.password_fingerprint.as_deref(),
        }
    }

    fn is(&self, password: &Password) -> bool {
        let compare = |applied| self.key.compare(applied, self.uid, FIELD, &[&password.value]);
        self.fingerprint.map(compare) == Some(Verdict::Same)
    }

    /// The fingerprint to keep: the old one while it matches, because a new one would cause a needless write.
    fn next(&self, password: &Password) -> String {
        match self.fingerprint {
            Some(applied) if self.is(password) => applied.to_owned(),
            _ => self.key.fingerprint(self.uid, FIELD, &[&password.value]),
        }
    }

    /// Whether the role has this password. The stored verifier decides if it can be read; otherwise the fingerprint of
    /// the last password does.
    fn is_set(&self, password: &Password, catalog: &Catalog) -> bool {
        match catalog.role.as_ref().map(|role| &role.stored) {
            None | Some(Stored::Nothing) => false,
            Some(Stored::Unreadable) => self.is(password),
            // The server encoded it in a way that cannot be repeated here.
            Some(Stored::Verifier(stored))
                if password.as_is
                    && scram::encoding(&password.value) == Encoding::Clear
                    && scram::encoding(stored) == Encoding::Md5 =>
            {
                self.is(password)
            }
            Some(Stored::Verifier(stored)) => is_stored(password, stored),
        }
    }

    /// The change that gives the role this password.
    fn compare(&self, password: &Password, catalog: &Catalog, inputs: &mut Inputs<'_>) -> PasswordChange {
        if self.is_set(password, catalog) {
            return PasswordChange::Keep;
        }
        if password.as_is {
            return PasswordChange::Set(password.value.clone());
        }
        PasswordChange::Set(scram::verifier(&password.value, &scram::salt(inputs.random)))
    }
}

fn is_stored(password: &Password, stored: &SecretString) -> bool {
    if scram::encoding(&password.value) != Encoding::Clear {
        return stanchion_kernel::redact::same(&password.value, stored);
    }
    let matches = scram::Rounds::of(1).matches(&password.value, stored.expose_secret());
    matches.unwrap_or(false)
}

/// Whether a role has a password although it should not.
pub(super) fn clear(catalog: &Catalog, applied: Option<&str>) -> PasswordChange {
    match catalog.role.as_ref().map(|role| &role.stored) {
        None | Some(Stored::Nothing) => PasswordChange::Keep,
        // It cannot be read: it is removed once, and the mark records that.
        Some(Stored::Unreadable) if applied == Some(NO_PASSWORD) => PasswordChange::Keep,
        Some(Stored::Unreadable | Stored::Verifier(_)) => PasswordChange::Clear,
    }
}

/// The mark of a role without a password.
pub(super) const NO_PASSWORD: &str = "none";
