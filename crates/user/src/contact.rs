//! Condition messages about the connection: whether the server was verified, and whether its log can be kept clean.

use stanchion_postgres::Server;
use stanchion_postgres::server::LOG_GRANTS;
use stanchion_postgres::session::Security;

/// Whether the server's identity was verified.
pub const fn reach(security: Security) -> &'static str {
    match (security.verified, security.encrypted) {
        (true, _) => "; the server was verified",
        (false, true) => {
            "; the connection is encrypted, but the server was not verified: use tls.mode verify-full"
        }
        (false, false) => {
            "; the connection is not encrypted, and the server was not verified: use tls.mode verify-full"
        }
    }
}

/// Password verifiers are part of statements. A superuser switches the server's log off for them, others need a
/// privilege.
pub fn log(server: &Server) -> String {
    if server.keeps_log_clean {
        return String::new();
    }
    format!(
        "; the administrator cannot switch off the server's log for its statements, so that verifiers of passwords may \
         appear there: {LOG_GRANTS} {:?}",
        server.role
    )
}
