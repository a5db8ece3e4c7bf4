//! Taking the driver's errors apart.

use std::error::Error as StdError;
use std::io;

use rustls::CertificateError;
use tokio_postgres::error::DbError;

use super::{Error, Inner, Kind, Secrets, ServerMessage};
use crate::sqlstate::Doing;
use crate::target::Target;

impl Error {
    /// From the driver's error, without anything that it could know of our secrets.
    pub(crate) fn from_driver(
        error: &tokio_postgres::Error,
        doing: Doing,
        target: &Target,
        secrets: &Secrets,
    ) -> Self {
        if let Some(db) = error.as_db_error() {
            return Self::from_server(db, doing, target, secrets);
        }
        let (kind, cause) = diagnose(error);
        Self::new(kind, doing, target, secrets.cleaned(&cause))
    }

    fn from_server(db: &DbError, doing: Doing, target: &Target, secrets: &Secrets) -> Self {
        let clean = |text: &str| secrets.cleaned(text);
        let mut error = Self::new(Kind::Server, doing, target, "");
        let Inner { message, .. } = &mut *error.0;
        // `where`, `query` and `position` are left out: they repeat statements, also of functions not ours.
        *message = Some(ServerMessage {
            code: db.code().code().to_owned(),
            message: clean(db.message()),
            detail: db.detail().map(clean),
            hint: db.hint().map(clean),
        });
        error
    }
}

/// Looks through the chain of causes for one that explains.
fn diagnose(error: &tokio_postgres::Error) -> (Kind, String) {
    let mut cause: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(inner) = cause {
        if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
            return diagnose_tls(tls);
        }
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            // An io::Error hides what it wraps from `source`.
            if let Some(tls) = io
                .get_ref()
                .and_then(|inner| inner.downcast_ref::<rustls::Error>())
            {
                return diagnose_tls(tls);
            }
            return diagnose_io(io);
        }
        // A plain string in the driver: the only TLS failure that is not the TLS library's.
        if inner.to_string() == "server does not support TLS" {
            return (
                Kind::TlsRefused,
                "the server does not offer TLS, but the target asks for it".to_owned(),
            );
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
    match error.kind() {
        io::ErrorKind::ConnectionRefused => (Kind::Refused, "connection refused".to_owned()),
        io::ErrorKind::TimedOut => (Kind::TimedOut, "no answer in time".to_owned()),
        // What the driver reports for a statement that cannot be sent at all.
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
