//! Classifies errors of PostgreSQL. The table of SQLSTATEs is in the postgres crate; this file only writes the
//! messages.

use std::time::Duration;

use stanchion_postgres::{Class as Reaction, Error, Kind, LEFT_ALONE};

use super::{Cause, Class, Problem, Retry};

/// The reason if the server did not answer a query.
pub const CONNECTION_FAILED: &str = "ConnectionFailed";
/// The server did not accept the administrator's name or password.
pub const AUTHENTICATION_FAILED: &str = "AuthenticationFailed";

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let reason = reason(&error);
        let message = if is_unreachable(&error) {
            // Only host and port: readers of the status may not be allowed to know the names of databases.
            let breaker = if error.is_left_alone() {
                format!("; {LEFT_ALONE}")
            } else {
                String::new()
            };
            format!("Cannot reach postgres at {}{breaker}", error.server())
        } else {
            error.to_string()
        };
        let class = match error.class() {
            Reaction::Transient => Class::Transient,
            Reaction::Dependency => Class::Dependency,
            Reaction::Human => Class::Human,
            Reaction::Permanent => Class::Permanent,
        };
        let mut problem = Self::new(class, reason, message).with_cause(cause(&error));
        if matches!(error.kind(), Kind::Contended | Kind::Exhausted) {
            // Nothing failed: other changes were first. Retry soon.
            problem = problem.with_retry(Retry::After(Duration::from_secs(1)));
        }
        problem.caused_by(error)
    }
}

/// What controllers decide by.
fn cause(error: &Error) -> Cause {
    match error.kind() {
        Kind::Contended | Kind::Exhausted => return Cause::DatabaseBusy,
        Kind::TooMuch => return Cause::AnswerTooLarge,
        Kind::Unverified | Kind::Forbidden => return Cause::ServerRefused,
        Kind::NotLeading => return Cause::Other,
        Kind::TlsRefused | Kind::CertificateUntrusted | Kind::CertificateName | Kind::Tls => {
            return Cause::Unreachable;
        }
        _ => {}
    }
    match error.sqlstate() {
        Some(code) if code.starts_with("28") => Cause::Unreachable,
        Some("3D000" | "42501") => Cause::Privileges,
        Some("2BP01") => Cause::Other,
        _ if error.is_connectivity() => Cause::Unreachable,
        _ if error.class() == Reaction::Permanent => Cause::InvalidSpec,
        Some("42704") => Cause::Privileges,
        _ => Cause::Other,
    }
}

/// Whether the server did not answer at all.
fn is_unreachable(error: &Error) -> bool {
    reason(error) == CONNECTION_FAILED
}

fn reason(error: &Error) -> &'static str {
    match error.kind() {
        Kind::Contended | Kind::Exhausted => return "DatabaseBusy",
        Kind::NotLeading => return "NotLeading",
        Kind::TooMuch => return "AnswerTooLarge",
        Kind::Unverified => return "ServerNotVerified",
        Kind::Forbidden => return "AddressNotAllowed",
        Kind::TlsRefused | Kind::CertificateUntrusted | Kind::CertificateName | Kind::Tls => {
            return "TlsFailed";
        }
        _ => {}
    }
    match error.sqlstate() {
        Some(code) if code.starts_with("28") => AUTHENTICATION_FAILED,
        Some("3D000") => "DatabaseNotFound",
        Some("42501") => "InsufficientPrivilege",
        Some("2BP01") => "CleanupBlocked",
        _ if error.is_connectivity() => CONNECTION_FAILED,
        _ if error.class() == Reaction::Permanent => "InvalidSpec",
        Some("42704") => "RoleNotFound",
        _ => "DatabaseError",
    }
}
