//! What follows when an instance no longer allows a namespace: its roles can no longer log in.

use stanchion_kernel::Problem;
use stanchion_postgres::Statement;

use crate::server::NOT_ALLOWED;

/// A role that may no longer log in.
pub fn statement(role: &str) -> Statement {
    Statement::new("ALTER ROLE ").ident(role).sql(" NOLOGIN")
}

/// What the object says from then on. It can be deleted, and goes on when the namespace is allowed again.
pub fn problem() -> Problem {
    Problem::human(
        NOT_ALLOWED,
        "the instance no longer allows this namespace, so its roles cannot log in; add the namespace to the instance's \
         spec.allowedNamespaces, or delete this object",
    )
}
