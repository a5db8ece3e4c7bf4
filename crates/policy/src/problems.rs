//! Failures under the original's reasons.

use stanchion_kernel::Problem;
use stanchion_kernel::problem::Cause;
use stanchion_kernel::text::shorten;
use stanchion_kernel::watch::dependencies::Key;
use stanchion_postgres::Error as PostgresError;
use stanchion_roles::apply;
use stanchion_roles::inspect;
use stanchion_roles::plan::{Check, Plan};

use crate::claims::Rival;

/// Another process holds the database's lock; nothing failed.
pub(crate) const LOCK_CONTENTION: &str = "LockContention";
/// Another policy declares the same.
pub(crate) const CONFLICT: &str = "ConflictingPolicy";
/// Roles cannot be dropped in their current state.
pub(crate) const UNSAFE_DROPS: &str = "UnsafeRoleDrops";
/// The connecting role lacks privileges.
pub(crate) const PRIVILEGES: &str = "InsufficientPrivileges";
/// What another policy declares is not known yet.
pub(crate) const PENDING: &str = "PoliciesPending";
/// No query succeeded.
pub(crate) const CONNECTION: &str = "DatabaseConnectionFailed";

/// How many overlaps a conflict names.
const NAMED: usize = 5;
/// How many blockers, findings and conflicting policies a message names.
pub(crate) const LISTED: usize = 10;
/// Most bytes of one of them.
const LONGEST: usize = 1024;

/// What the operator did when PostgreSQL returned an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum During {
    Connect,
    /// It read the catalog.
    Inspect,
    /// It changed the database.
    Apply,
}

/// A PostgreSQL error.
pub(crate) fn of_postgres(error: PostgresError, during: During) -> Problem {
    let state = error.sqlstate().map(str::to_owned);
    let problem = Problem::from(error);
    let reason = match (problem.cause, state.as_deref()) {
        (Cause::DatabaseBusy, _) => LOCK_CONTENTION,
        (Cause::ServerRefused | Cause::AnswerTooLarge, _) => problem.reason,
        (Cause::Unreachable, _) | (_, Some("3D000")) => return disconnected(problem),
        (_, Some("42501")) => PRIVILEGES,
        (_, Some("3F000" | "42P01" | "42883" | "42704")) => "MissingDatabaseObject",
        _ => match during {
            During::Connect => return disconnected(problem),
            During::Inspect => "DatabaseInspectionFailed",
            During::Apply => "ApplyFailed",
        },
    };
    let problem = problem.with_reason(reason);
    match problem.cause {
        // The database refused a statement of a spec that is valid.
        Cause::InvalidSpec => problem.with_cause(Cause::Other),
        _ => problem,
    }
}

fn disconnected(problem: Problem) -> Problem {
    problem.with_reason(CONNECTION).with_cause(Cause::Unreachable)
}

/// Whether this problem means that no query succeeded, unless the reconcile knows better.
pub(crate) fn is_disconnected(problem: &Problem) -> bool {
    matches!(
        problem.cause,
        Cause::Unreachable | Cause::ServerRefused | Cause::AnswerTooLarge
    )
}

pub(crate) fn of_inspection(error: inspect::Error) -> Problem {
    match error {
        inspect::Error::Postgres(error) => of_postgres(error, During::Inspect),
        inspect::Error::Unreadable(error) => {
            Problem::human("DatabaseInspectionFailed", error.to_string()).caused_by(error)
        }
    }
}

pub(crate) fn of_apply(error: apply::Error) -> Problem {
    match error {
        apply::Error::Postgres(error) => of_postgres(error, During::Apply),
        apply::Error::Blocked(plan) => blocked(&plan),
        apply::Error::WrongDatabase(error) => Problem::permanent("InvalidDatabaseTarget", error.to_string()),
        moved @ apply::Error::Moved(_) => {
            Problem::transient("PlanSuperseded", moved.to_string()).with_cause(Cause::Superseded)
        }
        other => Problem::human("ApplyFailed", other.to_string()).caused_by(other),
    }
}

/// Other policies declare the same as a policy of this namespace.
pub(crate) fn conflict(namespace: &str, rivals: &[Rival]) -> Problem {
    let lines = rivals.iter().map(|rival| {
        let named = first(&rival.over, NAMED, ", ");
        let Key { namespace, name } = &rival.who.key;
        format!("{namespace}/{name} also declares {named}")
    });
    let lines = first(lines, LISTED, "; policy ");
    let among_ourselves = rivals.iter().any(|rival| rival.who.key.namespace == namespace);
    let consequence = if among_ourselves {
        "neither is applied until only one does"
    } else {
        "the older one takes precedence, and this one waits for it"
    };
    Problem::human(CONFLICT, format!("policy {lines}; {consequence}")).with_cause(Cause::Overlap)
}

/// The blockers of a plan.
pub(crate) fn blocked(plan: &Plan) -> Problem {
    let (reason, cause) = match plan.blockers.iter().map(|blocker| blocker.check).min() {
        Some(Check::ExecutorAuthority) => (PRIVILEGES, Cause::Other),
        Some(Check::RoleDropSafety) => (UNSAFE_DROPS, Cause::UnsafeDrop),
        Some(Check::SchemaOwnerTransfer) => ("SchemaOwnerTransferBlocked", Cause::Other),
        Some(Check::ServerCompatibility) | None => ("UnsupportedByServer", Cause::Other),
    };
    let lines = plan.blockers.iter().map(ToString::to_string);
    Problem::human(reason, first(lines, LISTED, "; ")).with_cause(cause)
}

/// The first of a list, and how many more there are: a status has room for some, and a large database makes many.
pub(crate) fn first(
    all: impl IntoIterator<Item: AsRef<str>>,
    count: usize,
    separator: &'static str,
) -> String {
    let mut all = all.into_iter();
    let shown: Vec<_> = all
        .by_ref()
        .take(count)
        .map(|one| shorten(one.as_ref(), LONGEST))
        .collect();
    let shown = shown.join(separator);
    match all.count() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
