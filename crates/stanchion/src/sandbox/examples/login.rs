//! Shell commands to log in with the contents of a Secret: read with kubectl, to show where the password comes from;
//! or, without kubectl, from a libpq service file that is created from the Secrets.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use super::super::error::SandboxError;
use super::super::home;
use super::{Example, in_path};

/// The keys of a Secret, and their libpq names.
const KEYS: [(&str, &str); 5] = [
    ("host", "host"),
    ("port", "port"),
    ("dbname", "dbname"),
    ("username", "user"),
    ("password", "password"),
];

/// How to call psql on this machine.
pub(in super::super) struct Logins {
    psql: String,
    services: Option<PathBuf>,
}

impl Logins {
    /// Searches for the programs; PostgreSQL's own are next to the server. Without kubectl it writes the service file.
    pub(in super::super) async fn prepare(
        client: &Client,
        examples: &[&Example],
        programs: &Path,
        file: PathBuf,
    ) -> Result<Self, SandboxError> {
        let beside = programs.join("psql");
        let psql = if !in_path("psql") && beside.exists() {
            beside.display().to_string()
        } else {
            "psql".to_owned()
        };
        let services = if in_path("kubectl") {
            None
        } else {
            let secrets: Api<Secret> = Api::default_namespaced(client.clone());
            let mut text = String::new();
            for name in examples.iter().flat_map(|example| example.logins) {
                if let Some(secret) = secrets.get_opt(name).await? {
                    text.push_str(&service(name, &secret.data.unwrap_or_default()));
                }
            }
            home::write_private(&file, &text)?;
            Some(file)
        };
        Ok(Self { psql, services })
    }

    /// The command that logs in with this Secret.
    pub(super) fn psql(&self, secret: &str) -> String {
        let psql = &self.psql;
        match &self.services {
            None => {
                format!("{psql} \"$(kubectl get secret {secret} -o jsonpath='{{.data.uri}}' | base64 -d)\"")
            }
            Some(file) => format!("PGSERVICEFILE={} {psql} service={secret}", file.display()),
        }
    }
}

/// One section of a service file.
fn service(name: &str, data: &BTreeMap<String, ByteString>) -> String {
    let mut text = format!("[{name}]\n");
    for (key, keyword) in KEYS {
        if let Some(value) = data.get(key) {
            let _ = writeln!(text, "{keyword}={}", String::from_utf8_lossy(&value.0));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_kubectl_a_login_is_a_service() {
        let data = [("username", "orders"), ("password", "a=b"), ("uri", "unused")]
            .map(|(key, value)| (key.to_owned(), ByteString(value.into())));
        assert_eq!(
            service("orders-db", &data.into()),
            "[orders-db]\nuser=orders\npassword=a=b\n"
        );
        let logins = Logins {
            psql: "psql".into(),
            services: Some("/tmp/services".into()),
        };
        assert_eq!(
            logins.psql("orders-db"),
            "PGSERVICEFILE=/tmp/services psql service=orders-db"
        );
    }
}
