//! Converts the driver's errors.

use std::error::Error as StdError;
use std::io;

use rustls::CertificateError;
use tokio_postgres::error::DbError;

use super::plain::{beginning, plain, plain_to};
use super::{Error, Inner, Kind, Secrets, ServerMessage};
use crate::connection_config::ConnectionConfig;
use crate::session::Refusal;
use crate::sqlstate::Doing;

impl Error {
    /// From the driver's error, without anything that could contain our secrets.
    pub(crate) fn from_driver(
        error: &tokio_postgres::Error,
        doing: Doing,
        target: &ConnectionConfig,
        secrets: &Secrets,
    ) -> Self {
        if let Some(db) = error.as_db_error() {
            return Self::from_server(db, doing, target, secrets);
        }
        let (kind, cause) = diagnose(error);
        Self::new(kind, doing, target, plain(&secrets.cleaned(beginning(&cause))))
    }

    /// The network or TLS failed before the driver was involved.
    pub(crate) fn from_io(error: &io::Error, doing: Doing, target: &ConnectionConfig) -> Self {
        let (kind, cause) = diagnose_io(error);
        Self::new(kind, doing, target, plain(&cause))
    }

    /// TLS is required and not offered.
    pub(crate) fn tls_refused(doing: Doing, target: &ConnectionConfig) -> Self {
        let cause = "the server does not offer TLS, but the target asks for it";
        Self::new(Kind::TlsRefused, doing, target, cause)
    }

    /// We closed the connection for this reason.
    pub(crate) fn refused(refusal: Refusal, doing: Doing, target: &ConnectionConfig) -> Self {
        let kind = match refusal {
            Refusal::Password => Kind::Unverified,
            Refusal::Protocol => Kind::Protocol,
            Refusal::Budget => Kind::Exhausted,
            Refusal::Message(..)
            | Refusal::Answer(_)
            | Refusal::Rows(_)
            | Refusal::Flood
            | Refusal::Iterations(_) => Kind::TooMuch,
        };
        Self::new(kind, doing, target, refusal.to_string())
    }

    fn from_server(db: &DbError, doing: Doing, target: &ConnectionConfig, secrets: &Secrets) -> Self {
        // Both together have the limit of one text.
        let clean = |text: &str, most| plain_to(&secrets.cleaned(beginning(text)), most);
        let mut error = Self::new(Kind::Server, doing, target, "");
        let Inner { message, .. } = &mut *error.0;
        // `where`, `query` and `position` are omitted: they repeat statements, also of functions that are not ours.
        *message = Some(ServerMessage {
            code: code(db.code().code()),
            message: clean(db.message(), 2048),
            detail: db.detail().map(|text| clean(text, 1536)),
            hint: db.hint().map(|text| clean(text, 512)),
            routine: db.routine().map(|text| clean(text, 64)),
        });
        error
    }
}

/// An SQLSTATE, or an empty text if it is invalid.
fn code(text: &str) -> String {
    if text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        text.to_owned()
    } else {
        "?????".to_owned()
    }
}

/// Searches the chain of causes for one that explains the error.
fn diagnose(error: &tokio_postgres::Error) -> (Kind, String) {
    let mut cause: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(inner) = cause {
        if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
            return diagnose_tls(tls);
        }
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            return diagnose_io(io);
        }
        cause = inner.source();
    }
    if error.is_closed() {
        return (Kind::Unreachable, "the server closed the connection".to_owned());
    }
    let why = error
        .source()
        .map(|source| format!(": {source}"))
        .unwrap_or_default();
    (Kind::Protocol, format!("{error}{why}"))
}

fn diagnose_io(error: &io::Error) -> (Kind, String) {
    // `source` of an io::Error does not return the error that it wraps.
    if let Some(tls) = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
    {
        return diagnose_tls(tls);
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => (Kind::Refused, "connection refused".to_owned()),
        io::ErrorKind::TimedOut => (Kind::TimedOut, "no answer in time".to_owned()),
        // The driver's error for a statement that cannot be sent at all.
        io::ErrorKind::InvalidInput => (Kind::Protocol, error.to_string()),
        _ => (Kind::Unreachable, error.to_string()),
    }
}

fn diagnose_tls(error: &rustls::Error) -> (Kind, String) {
    use CertificateError::{
        ApplicationVerificationFailure, BadSignature, Expired, ExpiredContext, NotValidForName,
        NotValidForNameContext, NotValidYet, NotValidYetContext, UnknownIssuer,
    };
    let rustls::Error::InvalidCertificate(problem) = error else {
        return (Kind::Tls, format!("TLS failed: {error}"));
    };
    match problem {
        NotValidForName | NotValidForNameContext { .. } => {
            let why = "the server's certificate is for another name; check the host, or use verify-ca";
            (Kind::CertificateName, why.to_owned())
        }
        UnknownIssuer | BadSignature | ApplicationVerificationFailure => (
            Kind::CertificateUntrusted,
            "the server's certificate is not signed by the CA".to_owned(),
        ),
        Expired | ExpiredContext { .. } => (
            Kind::CertificateUntrusted,
            "the server's certificate has expired".to_owned(),
        ),
        NotValidYet | NotValidYetContext { .. } => (
            Kind::CertificateUntrusted,
            "the server's certificate is not valid yet".to_owned(),
        ),
        other => (
            Kind::CertificateUntrusted,
            format!("the server's certificate is not acceptable: {other:?}"),
        ),
    }
}
