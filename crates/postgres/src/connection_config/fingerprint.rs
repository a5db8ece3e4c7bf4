//! Compares two targets including their credentials, without keeping or printing the credentials.

use std::fmt;
use std::sync::LazyLock;

use aws_lc_rs::{hmac, rand};
use secrecy::ExposeSecret;

use crate::connection_config::ConnectionConfig;

/// Random for every process, so that a leaked fingerprint cannot be used to test guesses.
static KEY: LazyLock<hmac::Key> = LazyLock::new(|| {
    let mut key = [0; 32];
    // Without random bytes the key is zero: comparisons still work, and a fingerprint cannot be printed anyway.
    let _ = rand::fill(&mut key);
    hmac::Key::new(hmac::HMAC_SHA256, &key)
});

/// Equal for equal targets within one process. Cannot be printed or stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(…)")
    }
}

impl ConnectionConfig {
    /// The fingerprint of the account: the server and the credentials. The same for all databases.
    pub fn account(&self) -> Fingerprint {
        Self {
            database: String::new(),
            application_name: String::new(),
            set_role: None,
            connect_timeout: None,
            host: self.host.to_ascii_lowercase(),
            ..self.clone()
        }
        .fingerprint()
    }

    /// The fingerprint of everything that defines a connection.
    pub fn fingerprint(&self) -> Fingerprint {
        // Destructured without `..`: a new field cannot be forgotten here.
        let Self {
            host,
            port,
            database,
            user,
            password,
            tls,
            ca,
            application_name,
            options,
            connect_timeout,
            channel_binding,
            set_role,
            of_administrator,
            // Targets with the same credentials for the same server share its connections.
            named_in: _,
        } = self;
        let mut context = hmac::Context::with_key(&KEY);
        let mut add = |part: Option<&str>| {
            // The length in front distinguishes ("ab", "c") from ("a", "bc"), and None from "".
            let length = part.map_or(u64::MAX, |text| text.len() as u64);
            context.update(&length.to_le_bytes());
            context.update(part.unwrap_or_default().as_bytes());
        };
        for part in [host, database, user, application_name] {
            add(Some(part));
        }
        for part in [ca, options, set_role] {
            add(part.as_deref());
        }
        add(password.as_ref().map(ExposeSecret::expose_secret));
        add(Some(&format!(
            "{port} {tls:?} {connect_timeout:?} {channel_binding:?} {of_administrator}"
        )));
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(context.sign().as_ref());
        Fingerprint(fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::TlsMode;

    #[test]
    fn every_part_counts() {
        let base = ConnectionConfig::new("h", 1, "d", "u")
            .unwrap()
            .with_password("p".into());
        assert_eq!(base.fingerprint(), base.clone().fingerprint());
        let others = [
            ConnectionConfig::new("h2", 1, "d", "u")
                .unwrap()
                .with_password("p".into()),
            ConnectionConfig::new("h", 2, "d", "u")
                .unwrap()
                .with_password("p".into()),
            base.with_database("e").unwrap(),
            ConnectionConfig::new("h", 1, "d", "v")
                .unwrap()
                .with_password("p".into()),
            base.clone().with_password("q".into()),
            ConnectionConfig::new("h", 1, "d", "u").unwrap(),
            base.clone().with_tls(TlsMode::Require, None),
            base.clone().with_tls(TlsMode::Prefer, Some("pem".into())),
            base.clone().with_set_role(Some("r".into())),
            base.clone().with_application_name("x"),
        ];
        for other in &others {
            assert_ne!(base.fingerprint(), other.fingerprint());
        }
        assert_eq!(format!("{:?}", base.fingerprint()), "Fingerprint(…)");
    }
}
