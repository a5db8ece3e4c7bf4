//! The interface to a cluster. The role engine has no cluster client; the binary implements this trait.

use super::args::ReconcileArgs;

/// A cluster that runs the operator.
pub trait Cluster {
    /// Requests a reconcile of a policy and returns the result.
    fn reconcile(&self, request: &ReconcileArgs) -> impl Future<Output = Result<String, String>>;
}
