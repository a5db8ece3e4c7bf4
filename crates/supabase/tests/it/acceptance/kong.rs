//! Kong's decisions, computed from the file that its container's start script generates, by the rules of Kong's manual:
//! a regular expression before a prefix, the longest prefix first; then the plugins in their order. `kong_plugins.rs`
//! compares the plugins with those of Kong.

use std::process::Command;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use crate::test_env::TestEnv;

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is forwarded to this URL.
    To(String),
    /// It is answered with this code.
    Refused(u16),
}

/// The credentials of a request.
#[derive(Clone, Copy)]
pub(super) enum With<'a> {
    Nothing,
    /// In the header `apikey`.
    Key(&'a str),
    /// Name and password.
    Basic(&'a str, &'a str),
}

/// The configuration as Kong reads it.
pub(super) struct Kong(Value);

impl Kong {
    /// Runs the script of the `ConfigMap` with the environment of the Deployment, as the container does.
    pub(super) async fn of(env: &TestEnv) -> Self {
        let pod = env.pod("shop-kong").await;
        let files = env.get::<ConfigMap>("shop-kong-config").await.data.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (template, output) = (folder.path().join("kong.yml"), folder.path().join("out.yml"));
        std::fs::write(&template, &files["kong.yml"]).unwrap();
        let script = files["kong-entrypoint.sh"]
            .replace("/etc/kong/kong.yml", template.to_str().unwrap())
            .replace("exec /entrypoint.sh kong docker-start", "");
        let status = Command::new("/bin/sh")
            .args(["-c", &script])
            .envs(&pod.environment)
            .env("KONG_DECLARATIVE_CONFIG", &output)
            .status();
        assert!(status.unwrap().success());
        Self(serde_saphyr::from_str(&std::fs::read_to_string(output).unwrap()).unwrap())
    }

    /// All routes: name, path, URL, and the names of the plugins.
    pub(super) fn routes(&self) -> Vec<(&str, &str, &str, String)> {
        let services = self.0["services"].as_array().unwrap();
        services
            .iter()
            .map(|service| {
                let text = |value: &'_ Value| value.as_str().unwrap().to_owned();
                let plugins: Vec<String> = plugins(service).map(|plugin| text(&plugin["name"])).collect();
                (
                    service["name"].as_str().unwrap(),
                    service["routes"][0]["paths"][0].as_str().unwrap(),
                    service["url"].as_str().unwrap(),
                    plugins.join(" "),
                )
            })
            .collect()
    }

    /// The file.
    pub(super) fn config(&self) -> &Value {
        &self.0
    }

    /// The name of the service that a path leads to.
    pub(super) fn service_name(&self, path: &str) -> &str {
        self.service_of(path).unwrap()["name"].as_str().unwrap()
    }

    /// The result of a GET.
    pub(super) fn ask(&self, path: &str, with: With<'_>) -> Verdict {
        let Some(service) = self.service_of(path) else {
            return Verdict::Refused(404);
        };
        let mut consumer = None;
        for plugin in plugins(service) {
            let code = match plugin["name"].as_str().unwrap() {
                "request-termination" => plugin["config"]["status_code"].as_u64(),
                "key-auth" => {
                    consumer = self.consumer_of(with);
                    consumer.is_none().then_some(401)
                }
                "basic-auth" => (!self.knows(with)).then_some(401),
                "acl" => (!self.allows(plugin, consumer)).then_some(403),
                _ => None,
            };
            if let Some(code) = code {
                return Verdict::Refused(u16::try_from(code).unwrap());
            }
        }
        Verdict::To(service["url"].as_str().unwrap().to_owned())
    }

    fn service_of(&self, path: &str) -> Option<&Value> {
        let services = self.0["services"].as_array().unwrap();
        let matching = services.iter().filter_map(|service| {
            let pattern = service["routes"][0]["paths"][0].as_str()?;
            // The only regular expression contains nothing special but its end.
            match pattern
                .strip_prefix('~')
                .map(|pattern| pattern.trim_end_matches('$'))
            {
                Some(whole) => (path == whole).then_some((true, whole.len(), service)),
                None => path
                    .starts_with(pattern)
                    .then_some((false, pattern.len(), service)),
            }
        });
        matching
            .max_by_key(|(exact, length, _)| (*exact, *length))
            .map(|(_, _, service)| service)
    }

    fn consumer_of(&self, with: With<'_>) -> Option<&str> {
        let With::Key(key) = with else { return None };
        let consumers = self.0["consumers"].as_array()?;
        let known = consumers.iter().find(|consumer| {
            let credentials = consumer["keyauth_credentials"].as_array();
            credentials
                .into_iter()
                .flatten()
                .any(|credential| credential["key"] == key)
        });
        known?["username"].as_str()
    }

    fn knows(&self, with: With<'_>) -> bool {
        let With::Basic(username, password) = with else {
            return false;
        };
        let credentials = self.0["basicauth_credentials"].as_array().unwrap();
        credentials
            .iter()
            .any(|known| known["username"] == username && known["password"] == password)
    }

    fn allows(&self, acl: &Value, consumer: Option<&str>) -> bool {
        let groups = self.0["acls"].as_array().unwrap();
        let of_consumer = groups
            .iter()
            .filter(|group| group["consumer"].as_str() == consumer);
        let allowed = acl["config"]["allow"].as_array().unwrap();
        of_consumer
            .map(|group| &group["group"])
            .any(|group| allowed.contains(group))
    }
}

fn plugins(service: &Value) -> impl Iterator<Item = &Value> {
    service["plugins"].as_array().into_iter().flatten()
}
