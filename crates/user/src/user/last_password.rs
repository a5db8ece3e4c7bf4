//! Which role has which password, and the change that gives it one.

use secrecy::{ExposeSecret as _, SecretString};
use stanchion_kernel::Inputs;
use stanchion_kernel::redact::{FingerprintKey, Verdict};
use stanchion_postgres::scram::{self, Encoding};

use super::catalog::{Catalog, Stored};
use super::passwords::PasswordChange;
use super::target::{Password, Wanted};

/// The field that a fingerprint is bound to, so that it cannot be moved to another.
const FIELD: &str = "password";

/// The last password that was set.
pub(super) struct LastSet<'a> {
    key: &'a FingerprintKey,
    uid: &'a str,
    pub(super) fingerprint: Option<&'a str>,
    /// The login that got it; `None` for the role itself.
    login: Option<&'a str>,
    /// Whether the role, or its login in use, can log in.
    logs_in: bool,
}

impl<'a> LastSet<'a> {
    pub(super) fn of(wanted: &'a Wanted, catalog: &'a Catalog) -> Self {
        Self {
            key: catalog.viewer.marks.key(),
            uid: &wanted.identity.uid,
            fingerprint: wanted.before.password_fingerprint.as_deref(),
            login: wanted.before.active_login.as_deref(),
            logs_in: wanted.role.login,
        }
    }

    fn is(&self, password: &Password) -> bool {
        let compare = |applied| self.key.compare(applied, self.uid, FIELD, &[&password.value]);
        self.fingerprint.map(compare) == Some(Verdict::Same)
    }

    /// The fingerprint to keep: the old one while it matches, because a new one would cause a needless write.
    pub(super) fn next(&self, password: &Password) -> String {
        match self.fingerprint {
            Some(applied) if self.is(password) => applied.to_owned(),
            _ => self.key.fingerprint(self.uid, FIELD, &[&password.value]),
        }
    }

    /// Whether the role itself, or this login of it, has this password. The stored verifier decides if it can be read;
    /// otherwise the fingerprint of the last password does, for the role that got it: the others have an older one, or
    /// none. A role that cannot log in although it is to be used is not the one that got it, whatever the status says.
    pub(super) fn is_set(&self, password: &Password, login: Option<&str>, catalog: &Catalog) -> bool {
        let Some(role) = &catalog.role else {
            return false;
        };
        match &role.stored {
            Stored::Nothing => false,
            Stored::Unreadable => self.is(password) && self.login == login && (role.login || !self.logs_in),
            // The server encoded it in a way that cannot be repeated here.
            Stored::Verifier(stored)
                if password.as_is
                    && scram::encoding(&password.value) == Encoding::Clear
                    && scram::encoding(stored) == Encoding::Md5 =>
            {
                self.is(password)
            }
            Stored::Verifier(stored) => is_stored(password, stored),
        }
    }

    /// The change that gives the role this password.
    pub(super) fn compare(
        &self,
        password: &Password,
        login: Option<&str>,
        catalog: &Catalog,
        inputs: &mut Inputs<'_>,
    ) -> PasswordChange {
        if self.is_set(password, login, catalog) {
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
    let matches = scram::Rounds::default().matches(&password.value, stored.expose_secret());
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

/// Whether a role that is no longer to log in has a password. Where it cannot be read, it is removed with the login.
pub(super) fn clear_with_login(catalog: &Catalog) -> PasswordChange {
    let logs_in = catalog.role.as_ref().is_some_and(|role| role.login);
    clear(catalog, (!logs_in).then_some(NO_PASSWORD))
}

/// The mark of a role without a password.
pub(super) const NO_PASSWORD: &str = "none";
