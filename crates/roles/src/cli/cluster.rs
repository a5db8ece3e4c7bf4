//! What the command asks of a cluster. The engine knows none, so the binary brings it.

use super::args::ReconcileArgs;

/// A cluster with the operator in it.
pub trait Cluster {
    /// Asks the operator to look at a policy now; says what came of it.
    fn reconcile(&self, request: &ReconcileArgs) -> impl Future<Output = Result<String, String>>;
}
