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
        let failure = Failure::of(&error);
        let message = match failure {
            Failure::Unreachable => {
                // Only host and port: readers of the status may not be allowed to know the names of databases.
                let breaker = if error.is_left_alone() {
                    format!("; {LEFT_ALONE}")
                } else {
                    String::new()
                };
                format!("Cannot reach postgres at {}{breaker}", error.server())
            }
            Failure::DatabaseClosed => format!(
                "database {:?} at {} refuses connections (55000); ALTER DATABASE … ALLOW_CONNECTIONS true opens it",
                error.database(),
                error.server()
            ),
            _ => error.to_string(),
        };
        let class = match error.class() {
            Reaction::Transient => Class::Transient,
            Reaction::Dependency => Class::Dependency,
            Reaction::Human => Class::Human,
            Reaction::Permanent => Class::Permanent,
        };
        let mut problem = Self::new(class, failure.reason(), message).with_cause(failure.cause());
        if failure == Failure::Busy {
            // Nothing failed: other changes were first. Retry soon.
            problem = problem.with_retry(Retry::After(Duration::from_secs(1)));
        }
        problem.caused_by(error)
    }
}

/// What failed at the server. It has a reason for people and a cause for code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Busy,
    NotLeading,
    AnswerTooLarge,
    ServerNotVerified,
    AddressNotAllowed,
    Tls,
    Authentication,
    DatabaseNotFound,
    DatabaseClosed,
    InsufficientPrivilege,
    CleanupBlocked,
    Unreachable,
    InvalidSpec,
    RoleNotFound,
    Other,
}

impl Failure {
    fn of(error: &Error) -> Self {
        match error.kind() {
            Kind::Contended | Kind::Exhausted => return Self::Busy,
            Kind::NotLeading => return Self::NotLeading,
            Kind::TooMuch => return Self::AnswerTooLarge,
            Kind::Unverified => return Self::ServerNotVerified,
            Kind::Forbidden => return Self::AddressNotAllowed,
            Kind::TlsRefused | Kind::CertificateUntrusted | Kind::CertificateName | Kind::Tls => {
                return Self::Tls;
            }
            _ => {}
        }
        match error.sqlstate() {
            Some(code) if code.starts_with("28") => Self::Authentication,
            Some("3D000") => Self::DatabaseNotFound,
            _ if error.is_closed_database() => Self::DatabaseClosed,
            Some("42501") => Self::InsufficientPrivilege,
            Some("2BP01") => Self::CleanupBlocked,
            _ if error.is_connectivity() => Self::Unreachable,
            _ if error.class() == Reaction::Permanent => Self::InvalidSpec,
            Some("42704") => Self::RoleNotFound,
            _ => Self::Other,
        }
    }

    const fn reason(self) -> &'static str {
        match self {
            Self::Busy => "DatabaseBusy",
            Self::NotLeading => "NotLeading",
            Self::AnswerTooLarge => "AnswerTooLarge",
            Self::ServerNotVerified => "ServerNotVerified",
            Self::AddressNotAllowed => "AddressNotAllowed",
            Self::Tls => "TlsFailed",
            Self::Authentication => AUTHENTICATION_FAILED,
            Self::DatabaseNotFound => "DatabaseNotFound",
            Self::DatabaseClosed => "DatabaseClosed",
            Self::InsufficientPrivilege => "InsufficientPrivilege",
            Self::CleanupBlocked => "CleanupBlocked",
            Self::Unreachable => CONNECTION_FAILED,
            Self::InvalidSpec => "InvalidSpec",
            Self::RoleNotFound => "RoleNotFound",
            Self::Other => "DatabaseError",
        }
    }

    const fn cause(self) -> Cause {
        match self {
            Self::Busy => Cause::DatabaseBusy,
            Self::AnswerTooLarge => Cause::AnswerTooLarge,
            Self::ServerNotVerified | Self::AddressNotAllowed => Cause::ServerRefused,
            Self::Tls | Self::Authentication | Self::Unreachable => Cause::Unreachable,
            Self::DatabaseNotFound
            | Self::DatabaseClosed
            | Self::InsufficientPrivilege
            | Self::RoleNotFound => Cause::Privileges,
            Self::InvalidSpec => Cause::InvalidSpec,
            Self::NotLeading | Self::CleanupBlocked | Self::Other => Cause::Other,
        }
    }
}
