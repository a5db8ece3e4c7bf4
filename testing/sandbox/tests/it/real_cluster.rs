//! The real cluster of `make test-real`.

use std::ffi::OsString;

/// The kubeconfig of the real cluster of this run, if it has one.
pub(crate) fn kubeconfig() -> Option<OsString> {
    if std::env::var("STANCHION_TEST_CLUSTER").as_deref() != Ok("real") {
        return None;
    }
    std::env::var_os("STANCHION_TEST_KUBECONFIG")
}
