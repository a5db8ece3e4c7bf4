//! Which password each login shall have, and whether it has it.

use jiff::Timestamp;
use secrecy::SecretString;
use stanchion_kernel::redact::{FingerprintKey, Verdict};
use stanchion_postgres::scram::{self, Encoding};

use super::catalog::{Catalog, RoleFacts, Stored};
use super::plan::role::PasswordChange;
use super::target::Password;

/// The field that a fingerprint is bound to, so that it cannot be moved to another.
const FIELD: &str = "password";

/// What was found out about the role's passwords.
#[derive(Default)]
pub struct Passwords {
    /// The change of the role itself, where it logs in with a password.
    pub main: Option<PasswordChange>,
    /// The two logins of `DualUser`.
    pub dual: Vec<Login>,
    /// The password for the application, where it is known.
    pub current: Option<SecretString>,
    /// The fingerprint of what is applied when this pass ends well.
    pub mark: Option<String>,
    /// The Secret is gone while the role works: said in a condition, and nothing else happens.
    pub unavailable: Option<(&'static str, String)>,
    /// The value ended with a line break that was taken off.
    pub trimmed: bool,
    /// A new password is on its way, since this time.
    pub rotated: Option<Timestamp>,
    /// When the present password was set.
    pub changed: Option<Timestamp>,
    /// When the next one is due.
    pub next: Option<Timestamp>,
    /// When a login's grace period ends.
    pub grace_ends: Option<Timestamp>,
    /// The login to use, where there are two.
    pub active: Option<String>,
    /// The request for a new password that was acted on last.
    pub request: Option<String>,
    /// Whether the value differs from the one that was applied last.
    pub source_changed: bool,
    /// Whether sessions end with the password that opened them.
    pub terminates: bool,
}

/// One of two logins that take turns.
pub struct Login {
    /// Its name.
    pub name: String,
    /// The role as it is.
    pub catalog: Catalog,
    /// Whether it may log in now.
    pub enabled: bool,
    /// What becomes of its password.
    pub change: PasswordChange,
}

impl Passwords {
    /// Whether two logins take turns.
    pub fn is_dual(&self) -> bool {
        self.active.is_some()
    }

    /// The same when everything has been done that there is to do.
    #[must_use]
    pub fn settled(&self) -> Self {
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

    /// Logins that could log in until now, and whose time is over.
    pub fn retiring(&self) -> impl Iterator<Item = &Login> {
        self.dual.iter().filter(|login| {
            let could = |role: &RoleFacts| role.login;
            !login.enabled && login.catalog.role.as_ref().is_some_and(could)
        })
    }

    /// Whether a password or a login changes because that was asked for, which is no drift.
    pub fn is_moving(&self) -> bool {
        self.rotated.is_some()
            || (self.is_changing() && self.source_changed)
            || self.retiring().next().is_some()
    }
}

/// Whether the role has this password, and the change if not. Where the stored verifier can be read it decides;
/// elsewhere the fingerprint of the last password that was set does.
pub fn compare(
    password: &Password,
    catalog: &Catalog,
    key: &FingerprintKey,
    uid: &str,
    mark: Option<&str>,
) -> Result<PasswordChange, scram::NoRandomness> {
    let same_as_applied =
        mark.is_some_and(|mark| key.compare(mark, uid, FIELD, &[&password.value]) == Verdict::Same);
    let is_set = match catalog.role.as_ref().map(|role| &role.stored) {
        None | Some(Stored::Nothing) => false,
        Some(Stored::Unreadable) => same_as_applied,
        // The server has encoded it in its own way, which cannot be repeated here.
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

/// The fingerprint to keep: the old one while it fits, for a new one would be a write that says nothing.
pub fn fingerprint(password: &Password, key: &FingerprintKey, uid: &str, mark: Option<&str>) -> String {
    match mark {
        Some(mark) if key.compare(mark, uid, FIELD, &[&password.value]) == Verdict::Same => mark.to_owned(),
        _ => key.mark(uid, FIELD, &[&password.value]),
    }
}

/// Whether a role has a password that it should not have.
pub fn clear(catalog: &Catalog, mark: Option<&str>) -> PasswordChange {
    match catalog.role.as_ref().map(|role| &role.stored) {
        None | Some(Stored::Nothing) => PasswordChange::Keep,
        // Nobody can look: it is taken away once, and the mark remembers that.
        Some(Stored::Unreadable) if mark == Some(NO_PASSWORD) => PasswordChange::Keep,
        Some(Stored::Unreadable | Stored::Verifier(_)) => PasswordChange::Clear,
    }
}

/// The mark of a role without a password.
pub const NO_PASSWORD: &str = "none";
