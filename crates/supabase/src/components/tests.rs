//! The objects of every component, for the smallest and the fullest spec.

use serde_json::{Value, json};

use super::project::tests::{ProjectFixture, fixture};
use super::*;

mod start;

/// Masks what differs between runs: the key pair is new each time.
fn settled(mut deployment: Value) -> Value {
    if let Some(hash) =
        deployment.pointer_mut("/spec/template/metadata/annotations/supabase.strrl.dev~1secret-hash")
    {
        *hash = "(hash)".into();
    }
    deployment
}

fn render(fixture: &ProjectFixture, name: &str) -> Value {
    let project = fixture.project();
    let (component, options) = wanted(&fixture.spec)
        .find(|(component, _)| component.name == name)
        .unwrap();
    settled(deployment(component, options, &project))
}

fn environment_of(deployment: &Value) -> Vec<String> {
    let variables = deployment
        .pointer("/spec/template/spec/containers/0/env")
        .unwrap();
    variables
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| {
            let name = variable["name"].as_str().unwrap();
            let secret = &variable["valueFrom"]["secretKeyRef"];
            let field = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str();
            match variable["value"].as_str().or(field) {
                Some(value) => format!("{name}={value}"),
                None => format!(
                    "{name}={}/{}",
                    secret["name"].as_str().unwrap(),
                    secret["key"].as_str().unwrap()
                ),
            }
        })
        .collect()
}

fn fullest() -> ProjectFixture {
    let mut fixture = fixture(|spec| {
        spec["database"] = json!({
            "secretRef": {"name": "db"}, "sslMode": "verify-full", "caSecretRef": {"name": "ca"}, "maxConnections": 7,
        });
        spec["storage"]["forcePathStyle"] = json!(false);
        spec["imgproxy"] = json!({});
        spec["functions"] = json!({"source": {"configMap": {"name": "code"}}, "verifyJWT": false});
        spec["pooler"] = json!({"defaultPoolSize": 5});
        spec["analytics"] = json!({"clientCertificateSecretRef": {"name": "client"}});
        spec["jwt"] = json!({"expiry": "30m"});
        spec["ingress"] = json!({"enabled": true, "host": "shop.example.com", "tlsSecretName": "tls"});
        spec["auth"] = json!({
            "smtpSecretRef": {"name": "smtp"}, "oauthSecretRef": {"name": "oauth"},
            "siteUrl": "https://app.example.com", "redirectUrls": ["https://a/*", "https://b/*"],
        });
        spec["studio"] = json!({"dashboardBasicAuthSecretRef": {"name": "login"}});
    });
    let providers = [
        "github-client-id",
        "github-secret",
        "azure-client-id",
        "azure-secret",
        "azure-url",
    ];
    fixture.seal(&[("smtp", &["host", "senderName"]), ("oauth", &providers)]);
    fixture
}

#[test]
fn the_environment_of_each() {
    for (name, fixture) in [("smallest", fixture(|_| {})), ("fullest", fullest())] {
        let all: Vec<String> = wanted(&fixture.spec)
            .map(|(component, _)| {
                let lines = environment_of(&render(&fixture, component.name)).join("\n  ");
                format!("{}\n  {lines}", component.name)
            })
            .collect();
        insta::assert_snapshot!(name, all.join("\n"));
    }
}

/// The documentation lists exactly the variables that exist.
#[test]
fn the_environment_is_documented() {
    const PAGE: &str = include_str!("../../../../docs/supabase/environment.md");
    // Only for a second project on a server.
    const ELSEWHERE: [&str; 1] = ["SLOT_NAME_SUFFIX"];
    let is_variable = |name: &&str| {
        name.chars()
            .all(|sign| sign.is_ascii_uppercase() || sign.is_ascii_digit() || sign == '_')
    };
    let beds = [fixture(|_| {}), fullest()];
    for component in ALL {
        let section = PAGE
            .split("\n## ")
            .find(|section| section.starts_with(&format!("{}\n", component.name)));
        let rows = section
            .unwrap()
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let documented: BTreeSet<&str> = rows
            .filter(is_variable)
            .filter(|name| !ELSEWHERE.contains(name))
            .collect();
        let lines: Vec<String> = beds
            .iter()
            .filter(|fixture| wanted(&fixture.spec).any(|(row, _)| row.name == component.name))
            .flat_map(|fixture| environment_of(&render(fixture, component.name)))
            .collect();
        let given: BTreeSet<&str> = lines
            .iter()
            .filter_map(|line| Some(line.split_once('=')?.0))
            .collect();
        assert_eq!(documented, given, "{}", component.name);
    }
}

/// Without a named authority each component verifies with those of its image; none accepts any server.
#[test]
fn a_certificate_is_checked_by_the_authorities_that_the_image_knows() {
    let variable = |mode: &str, component: &str, name: &str| {
        let fixture = fixture(|spec| spec["database"]["sslMode"] = json!(mode));
        let lines = environment_of(&render(&fixture, component));
        let start = format!("{name}=");
        let value = lines.iter().find_map(|line| line.strip_prefix(&start));
        value.unwrap_or_default().to_owned()
    };
    for mode in ["verify-ca", "verify-full"] {
        for (component, name, words) in [
            ("auth", "GOTRUE_DB_DATABASE_URL", format!("sslmode={mode}")),
            (
                "postgrest",
                "PGRST_DB_URI",
                "sslmode=verify-full&sslrootcert=system".into(),
            ),
            (
                "realtime",
                "DB_SSL_CA_CERT",
                "/etc/ssl/certs/ca-certificates.crt".into(),
            ),
            ("storage", "DATABASE_URL", "sslmode=verify-full".into()),
            ("meta", "PG_META_DB_SSL_MODE", "verify-full".into()),
        ] {
            let value = variable(mode, component, name);
            assert!(value.ends_with(&words), "{mode} {component}: {value}");
        }
    }
    assert_eq!(variable("require", "realtime", "DB_SSL_CA_CERT"), "");
    assert_eq!(variable("require", "meta", "PG_META_DB_SSL_MODE"), "require");
    assert_eq!(variable("prefer", "meta", "PG_META_DB_SSL_MODE"), "disable");
    assert!(variable("require", "storage", "DATABASE_URL").ends_with("sslmode=no-verify"));
}

#[test]
fn a_whole_deployment_and_its_service() {
    let fixture = fullest();
    let project = fixture.project();
    let (component, _) = wanted(&fixture.spec).nth(1).unwrap();
    let both = json!([render(&fixture, component.name), service(component, &project)]);
    insta::assert_yaml_snapshot!(both);
}

/// Names, labels, ports, images and resources, as users and predecessors know them.
#[test]
fn the_table_of_components() {
    let rows: Vec<String> = ALL
        .iter()
        .map(|component| {
            let ports: Vec<String> = component
                .ports
                .iter()
                .map(|port| {
                    format!(
                        "{}:{}{}",
                        port.name,
                        port.number,
                        if port.service { "*" } else { "" }
                    )
                })
                .collect();
            let Resources { requests, limits } = &component.resources;
            format!(
                "{} {} {} {} {} {}/{} {}/{} uid {}",
                component.name,
                component.field,
                component.label,
                component.condition,
                ports.join(","),
                requests.0,
                requests.1,
                limits.0,
                limits.1,
                component.user,
            )
        })
        .collect();
    insta::assert_snapshot!(rows.join("\n"));
}

/// The page that a person updates after upstream's releases lists the image of each component.
#[test]
fn the_default_images_are_compared_with_upstreams() {
    const PAGE: &str = include_str!("../../../../docs/supabase/images.md");
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('`'))
        .map(|line| {
            line.split('|')
                .map(|cell| cell.trim().trim_matches('`'))
                .collect()
        })
        .collect();
    let named: Vec<(&str, &str)> = rows.iter().map(|row| (row[1], row[2])).collect();
    let deployed: Vec<(&str, &str)> = ALL.iter().map(|row| (row.name, row.image)).collect();
    assert_eq!(named, deployed);
    for row in rows {
        assert!(row[2] == row[3] || !row[4].is_empty(), "{row:?} gives no reason");
    }
}

/// A user's browser opens the links in mails, and reaches Auth only through the gateway.
#[test]
fn the_links_in_mails_lead_through_the_gateway() {
    let fixture = fullest();
    let lines = environment_of(&render(&fixture, "auth"));
    let value = |name: &str| {
        let start = format!("{name}=");
        lines.iter().find_map(|line| line.strip_prefix(&start)).unwrap()
    };
    let external = value("API_EXTERNAL_URL");
    let (scheme, rest) = external.split_once("://").unwrap();
    let (host, _) = rest.split_once('/').unwrap();
    let open = ALL.iter().flat_map(|row| row.routes).map(|route| route.path);
    let open: Vec<&str> = open.collect();
    for what in ["INVITE", "CONFIRMATION", "RECOVERY", "EMAIL_CHANGE"] {
        // As Auth resolves a reference: an absolute path replaces the whole path of the base.
        let path = value(&format!("GOTRUE_MAILER_URLPATHS_{what}"));
        assert_eq!(
            format!("{scheme}://{host}{path}"),
            "https://shop.example.com/auth/v1/verify"
        );
        assert!(open.contains(&path), "{what}: no route leads to {path}");
    }
}

/// Without a public URL Storage uses the URL of the request, such as a port-forward's.
#[test]
fn storage_gets_a_public_url_only_if_there_is_one() {
    let named = |fixture: &ProjectFixture| {
        let lines = environment_of(&render(fixture, "storage"));
        lines.iter().any(|line| line.starts_with("STORAGE_PUBLIC_URL="))
    };
    assert!(!named(&fixture(|_| {})));
    assert!(named(&fixture(
        |spec| spec["studio"] = json!({"publicUrl": "https://a.example"})
    )));
    assert!(named(&fullest()));
}

/// Optional components are off by default, and one field enables each with its objects in the database and in the
/// Secret.
#[test]
fn what_is_optional_comes_with_its_field() {
    let plain = fixture(|_| {});
    let names: Vec<&str> = wanted(&plain.spec).map(|(component, _)| component.name).collect();
    let optional: Vec<&str> = ALL
        .iter()
        .map(|component| component.name)
        .filter(|name| !names.contains(name))
        .collect();
    assert_eq!(optional, ["imgproxy", "functions", "pooler", "analytics"]);
    assert!(!logins(&plain.spec).contains(&Login::Functions));
    assert_eq!(generated(&plain.spec).len(), 2);
    let full = fullest();
    assert_eq!(logins(&full.spec), Login::ALL);
    assert_eq!(generated(&full.spec).len(), 7);
}

/// Upstream's start calls sudo, and its tenant connects unencrypted.
#[test]
fn realtime_starts_without_privileges_and_uses_tls_if_required() {
    let command = |mode: &str| {
        let fixture = fixture(|spec| spec["database"]["sslMode"] = json!(mode));
        let deployment = render(&fixture, "realtime");
        let command = deployment.pointer("/spec/template/spec/containers/0/command");
        serde_json::from_value::<Vec<String>>(command.unwrap().clone()).unwrap()
    };
    let [plain, encrypted] = ["disable", "require"].map(command);
    let (line, script) = (&encrypted[6], &encrypted[8]);
    assert!(line.contains(r#"eval "$1""#) && line.ends_with("exec /app/bin/server"));
    assert!(script.contains("ssl_enforced") && !script.contains("$("));
    assert_eq!(plain.len(), 7);
    assert!(!plain[6].contains("$1") && plain[6].ends_with("exec /app/bin/server"));
}

/// Two components with the same generated value or the same path would be an error in the table.
#[test]
fn no_two_rows_are_in_each_others_way() {
    let all = |what: fn(&'static Component) -> Vec<&'static str>| {
        let mut all: Vec<&str> = ALL.iter().flat_map(what).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "{all:?}");
    };
    all(|row| vec![row.name]);
    all(|row| vec![row.field]);
    all(|row| vec![row.condition]);
    all(|row| row.keys.iter().map(|key| key.key).collect());
    all(|row| row.routes.iter().map(|route| route.name).collect());
    all(|row| row.routes.iter().map(|route| route.path).collect());
}

/// Every pod satisfies the Pod Security Standard `restricted`, and has three probes.
#[test]
fn every_pod_is_restricted_and_probed() {
    let fixture = fullest();
    for (component, _) in wanted(&fixture.spec) {
        let deployment = render(&fixture, component.name);
        let pod = deployment.pointer("/spec/template/spec").unwrap();
        let container = &pod["containers"][0];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{}", component.name);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
        assert_eq!(
            container["securityContext"]["capabilities"]["drop"],
            json!(["ALL"])
        );
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            assert!(container[probe].is_object(), "{} {probe}", component.name);
        }
    }
}

#[test]
fn every_option_is_honoured() {
    let options = json!({
        "image": "mirror/kong:1", "replicas": 0,
        "resources": {"limits": {"memory": "1Gi"}},
        "extraEnv": [{"name": "KONG_DNS_ORDER", "value": "A"}, {"name": "MORE", "value": "1"}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        "securityContext": {"readOnlyRootFilesystem": true},
        "podSecurityContext": {"runAsUser": 7, "fsGroup": 8},
        "imagePullSecrets": [{"name": "pull"}],
        "podAnnotations": {"team": "shop"},
        "serviceAccountName": "gate",
    });
    let fixture = fixture(|spec| spec["kong"] = options);
    let mut deployment = render(&fixture, "kong");
    deployment["spec"]["template"]["metadata"]["annotations"]["supabase.strrl.dev/config-hash"] =
        "(hash)".into();
    insta::assert_yaml_snapshot!(deployment);
}

#[test]
fn with_an_autoscaler_the_number_of_pods_is_its_business() {
    let fixture = fixture(|spec| spec["kong"] = json!({"autoscaling": {"maxReplicas": 5}}));
    let deployment = render(&fixture, "kong");
    assert!(deployment["spec"].get("replicas").is_none());
    let (component, options) = wanted(&fixture.spec).next().unwrap();
    let project = fixture.project();
    let scaler = crate::network::autoscaler(component, options, &project).unwrap();
    assert_eq!(scaler["spec"]["scaleTargetRef"]["name"], "shop-kong");
    assert_eq!(scaler["spec"]["maxReplicas"], 5);
}
