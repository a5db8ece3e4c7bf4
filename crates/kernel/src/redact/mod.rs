//! Secret values that cannot be shown.
//!
//! A secret is a [`SecretString`] from the moment it is read. The type has no `Display`, so it cannot become part of
//! a message:
//!
//! ```compile_fail,E0277
//! use stanchion_kernel::redact::SecretString;
//! let password = SecretString::from("hunter2");
//! format!("the password is {password}");
//! ```
//!
//! it cannot be serialised, so it cannot become part of a status, an event or a `ConfigMap`:
//!
//! ```compile_fail,E0277
//! use stanchion_kernel::redact::SecretString;
//! #[derive(serde::Serialize)]
//! struct Status {
//!     password: SecretString,
//! }
//! ```
//!
//! it cannot be compared by `==`, which takes as long as the values agree ([`same`] does not):
//!
//! ```compile_fail,E0369
//! use stanchion_kernel::redact::SecretString;
//! let _ = SecretString::from("hunter2") == SecretString::from("hunter3");
//! ```
//!
//! and a structure that holds one can still be printed for a log:
//!
//! ```
//! use stanchion_kernel::redact::SecretString;
//! #[derive(Debug)]
//! struct Login {
//!     user: String,
//!     password: SecretString,
//! }
//! let login = Login { user: "app".into(), password: SecretString::from("hunter2") };
//! let shown = format!("{login:?}");
//! assert!(shown.contains("app") && shown.contains("[REDACTED]") && !shown.contains("hunter2"));
//! ```
//!
//! Code that needs the value calls [`ExposeSecret::expose_secret`], which is easy to search for. The memory is cleared
//! when the value is dropped.

mod fingerprint;
mod install_key;
mod mac;
mod values;

pub use fingerprint::{FingerprintKey, KeyLength, Verdict};
pub use install_key::{InstallKeyError, install_key, install_key_rules};
pub use secrecy::{ExposeSecret, SecretSlice, SecretString};
pub use values::{SecretValues, ValueError};

/// Whether two secrets are equal, in constant time.
pub fn same(one: &SecretString, other: &SecretString) -> bool {
    let (one, other) = (one.expose_secret().as_bytes(), other.expose_secret().as_bytes());
    aws_lc_rs::constant_time::verify_slices_are_equal(one, other).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_compared_by_value() {
        let secret = SecretString::from("hunter2");
        assert!(same(&secret, &secret.clone()));
        for other in ["hunter3", "hunter", "hunter22", ""] {
            assert!(!same(&secret, &SecretString::from(other)), "{other}");
        }
    }
}
