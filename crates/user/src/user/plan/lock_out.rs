//! Disables the logins of a namespace that an instance no longer allows.

use stanchion_kernel::Problem;
use stanchion_postgres::Statement;

use crate::server::NOT_ALLOWED;

/// Disables the login of a role.
pub fn statement(role: &str) -> Statement {
    Statement::new("ALTER ROLE ").ident(role).sql(" NOLOGIN")
}

/// The problem that the object reports from then on. It can be deleted, and continues when the namespace is allowed
/// again.
pub fn problem() -> Problem {
    Problem::human(
        NOT_ALLOWED,
        "the instance no longer allows this namespace, so its roles cannot log in; add the namespace to the instance's \
         spec.allowedNamespaces, or delete this object",
    )
}
