//! The desired password of each login, and whether it is set.

use jiff::Timestamp;
use secrecy::SecretString;
use stanchion_kernel::redact::{FingerprintKey, Verdict};
use stanchion_postgres::scram::{self, Encoding};

use super::catalog::{Catalog, RoleFacts, Stored};
use super::plan::role::PasswordChange;
use super::target::Password;

/// The field that a fingerprint is bound to, so that it cannot be moved to another.
const FIELD: &str = "password";

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
    /// Its name.
    pub name: String,
    /// The role as it is.
    pub catalog: Catalog,
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

    /// The logins.
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

/// Whether the role has this password, and the change if not. The stored verifier decides if it can be read; otherwise
/// the fingerprint of the last password does.
pub fn compare(
    password: &Password,
    catalog: &Catalog,
    key: &FingerprintKey,
    uid: &str,
    applied: Option<&str>,
) -> Result<PasswordChange, scram::NoRandomness> {
    let same_as_applied =
        applied.is_some_and(|applied| key.compare(applied, uid, FIELD, &[&password.value]) == Verdict::Same);
    let is_set = match catalog.role.as_ref().map(|role| &role.stored) {
        None | Some(Stored::Nothing) => false,
        Some(Stored::Unreadable) => same_as_applied,
        // The server encoded it in a way that cannot be repeated here.
        Some(Stored::Verifier(stored))
            if password.as_is
                && scram::encoding(&password.value) == Encoding::Clear
                && scram::encoding(stored) == Encoding::Md5 =>
        {
            same_as_applied
        }
        Some(Stored::Verifier(stored)) => is_stored(password, stored),
    };
    if is_set {
        return Ok(PasswordChange::Keep);
    }
    let value = if password.as_is {
        password.value.clone()
    } else {
        scram::verifier(&password.value)?
    };
    Ok(PasswordChange::Set(value))
}

fn is_stored(password: &Password, stored: &SecretString) -> bool {
    use secrecy::ExposeSecret as _;
    if scram::encoding(&password.value) != Encoding::Clear {
        return stanchion_kernel::redact::same(&password.value, stored);
    }
    scram::matches(&password.value, stored.expose_secret()).unwrap_or(false)
}

/// The fingerprint to keep: the old one while it matches, because a new one would cause a needless write.
pub fn fingerprint(password: &Password, key: &FingerprintKey, uid: &str, applied: Option<&str>) -> String {
    match applied {
        Some(applied) if key.compare(applied, uid, FIELD, &[&password.value]) == Verdict::Same => {
            applied.to_owned()
        }
        _ => key.fingerprint(uid, FIELD, &[&password.value]),
    }
}

/// Whether a role has a password although it should not.
pub fn clear(catalog: &Catalog, applied: Option<&str>) -> PasswordChange {
    match catalog.role.as_ref().map(|role| &role.stored) {
        None | Some(Stored::Nothing) => PasswordChange::Keep,
        // It cannot be read: it is removed once, and the mark records that.
        Some(Stored::Unreadable) if applied == Some(NO_PASSWORD) => PasswordChange::Keep,
        Some(Stored::Unreadable | Stored::Verifier(_)) => PasswordChange::Clear,
    }
}

/// The mark of a role without a password.
pub const NO_PASSWORD: &str = "none";
