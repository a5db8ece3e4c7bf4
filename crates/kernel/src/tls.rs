//! The TLS mode of a spec, as the driver takes it.

use stanchion_api::instance::TlsMode;
use stanchion_postgres as pg;

/// libpq's five modes: the API's type has a schema, and the driver's does not know Kubernetes.
pub const fn tls_mode(mode: TlsMode) -> pg::TlsMode {
    match mode {
        TlsMode::Disable => pg::TlsMode::Disable,
        TlsMode::Prefer => pg::TlsMode::Prefer,
        TlsMode::Require => pg::TlsMode::Require,
        TlsMode::VerifyCa => pg::TlsMode::VerifyCa,
        TlsMode::VerifyFull => pg::TlsMode::VerifyFull,
    }
}
