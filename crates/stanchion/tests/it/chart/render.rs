//! The rendered chart, without a cluster.

use std::collections::BTreeSet;

use serde_json::Value;
use stanchion_testkit::cluster::Cluster;

use super::{chart, documents, examples_of_values, helm, kubectl, of_kind, run, template};
use crate::operator::{command, stdout};

const CONTROLLERS: [&str; 4] = ["user", "supabase", "policy", "gitlab"];

#[test]
fn lint_has_nothing_to_say_about_any_example_of_values() {
    let Some(helm) = helm("lint") else { return };
    for values in examples_of_values() {
        let chart = chart();
        let words = [
            "lint",
            "--strict",
            chart.to_str().unwrap(),
            "-f",
            values.to_str().unwrap(),
        ];
        run(&helm, &words).unwrap();
    }
}

#[test]
fn chart_and_program_have_one_version() {
    let text = std::fs::read_to_string(chart().join("Chart.yaml")).unwrap();
    let chart = &documents(&text)[0];
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    // Artifact Hub shows the existing kinds.
    let shown = documents(chart["annotations"]["artifacthub.io/crds"].as_str().unwrap());
    let shown: BTreeSet<&str> = shown[0]
        .as_array()
        .unwrap()
        .iter()
        .map(|crd| crd["name"].as_str().unwrap())
        .collect();
    let crds = stanchion_api::crds();
    let there: BTreeSet<&str> = crds
        .iter()
        .map(|crd| crd.metadata.name.as_deref().unwrap())
        .collect();
    assert_eq!(shown, there);
}

/// `make generate` writes the CRDs of each controller into a folder with the controller's name.
#[test]
fn every_controller_is_a_value_of_the_chart() {
    let folders = std::fs::read_dir(chart().join("files/crds")).unwrap();
    let generated: BTreeSet<String> = folders
        .map(|folder| folder.unwrap().file_name().into_string().unwrap())
        .collect();
    let values = std::fs::read_to_string(chart().join("values.yaml")).unwrap();
    let schema = std::fs::read_to_string(chart().join("values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let names =
        |object: &Value| -> BTreeSet<String> { object.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(names(&documents(&values)[0]["controllers"]), generated);
    assert_eq!(
        names(&schema["properties"]["controllers"]["properties"]),
        generated
    );
    assert_eq!(BTreeSet::from(CONTROLLERS.map(str::to_owned)), generated);
}

/// One permission: namespace, group, resource, object, verb.
pub(super) type Permission = (String, String, String, String, String);

/// The permissions of the account that the roles are bound to, one by one.
pub(super) fn permissions(objects: &[Value]) -> BTreeSet<Permission> {
    let mut permissions = BTreeSet::new();
    for binding in objects.iter().filter(|object| {
        object["kind"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("RoleBinding"))
    }) {
        let subject = &binding["subjects"][0];
        assert_eq!(subject["namespace"], "stanchion-system");
        // `helm test` has its own account.
        if subject["name"] != "stanchion" {
            continue;
        }
        let place = binding["metadata"]["namespace"]
            .as_str()
            .unwrap_or("*")
            .to_owned();
        let role = objects.iter().find(|object| {
            object["kind"] == binding["roleRef"]["kind"]
                && object["metadata"]["name"] == binding["roleRef"]["name"]
                && object["metadata"]["namespace"] == binding["metadata"]["namespace"]
        });
        let words = |value: &Value| -> Vec<String> {
            value
                .as_array()
                .into_iter()
                .flatten()
                .map(|word| word.as_str().unwrap().to_owned())
                .collect()
        };
        for rule in role.unwrap()["rules"].as_array().unwrap() {
            let mut names = words(&rule["resourceNames"]);
            if names.is_empty() {
                names.push(String::new());
            }
            for group in words(&rule["apiGroups"]) {
                for resource in words(&rule["resources"]) {
                    for (name, verb) in names
                        .iter()
                        .flat_map(|name| words(&rule["verbs"]).into_iter().map(move |verb| (name, verb)))
                    {
                        assert!(
                            ![&group, &resource, &verb].iter().any(|word| word.contains('*')),
                            "{rule}"
                        );
                        permissions.insert((
                            place.clone(),
                            group.clone(),
                            resource.clone(),
                            name.clone(),
                            verb,
                        ));
                    }
                }
            }
        }
    }
    permissions
}

/// For each selection of controllers, for the whole cluster and for two namespaces: neither more nor less.
#[test]
fn the_permissions_are_those_of_stanchion_rbac() {
    let Some(helm) = helm("permissions") else { return };
    for choice in 1..(1 << CONTROLLERS.len()) {
        let chosen: Vec<&str> = CONTROLLERS
            .iter()
            .enumerate()
            .filter(|(bit, _)| choice & (1 << bit) != 0)
            .map(|(_, name)| *name)
            .collect();
        let settings = CONTROLLERS
            .iter()
            .map(|name| format!("controllers.{name}={}", chosen.contains(name)))
            .collect::<Vec<_>>()
            .join(",");
        for namespaces in [&[][..], &["team-a", "team-b"]] {
            let mut words = vec!["--set", settings.as_str(), "-s", "templates/rbac.yaml"];
            let list = format!("namespaces={{{}}}", namespaces.join(","));
            let joined = chosen.join(",");
            let mut rbac = vec!["rbac", "--controllers", joined.as_str()];
            if !namespaces.is_empty() {
                words.extend(["--set", list.as_str()]);
                rbac.extend(namespaces.iter().flat_map(|namespace| ["--namespace", namespace]));
            }
            let (chart, program) = (
                permissions(&template(&helm, &words)),
                permissions(&documents(&stdout(&rbac))),
            );
            let (more, less): (Vec<_>, Vec<_>) = (
                chart.difference(&program).collect(),
                program.difference(&chart).collect(),
            );
            assert!(
                more.is_empty() && less.is_empty(),
                "{rbac:?}: more {more:?}, less {less:?}"
            );
        }
    }
}

#[test]
fn own_certificates_or_no_webhooks_need_fewer_rules() {
    let Some(helm) = helm("fewer_permissions") else {
        return;
    };
    let all = permissions(&template(&helm, &[]));
    let named = |permissions: &BTreeSet<Permission>, name: &str| {
        permissions.iter().any(|permission| permission.3 == name)
    };
    assert!(named(&all, "stanchion-webhook-certificate") && named(&all, "stanchion-stanchion-system"));
    let mounted = permissions(&template(
        &helm,
        &["--set", "webhooks.certificates.provider=cert-manager"],
    ));
    assert!(
        !named(&mounted, "stanchion-webhook-certificate") && named(&mounted, "stanchion-stanchion-system")
    );
    let none = permissions(&template(&helm, &["--set", "webhooks.enabled=false"]));
    let groups: BTreeSet<&str> = none.iter().map(|permission| permission.1.as_str()).collect();
    for group in [
        "admissionregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
    ] {
        assert!(!groups.contains(group), "{group}");
    }
    assert!(mounted.is_subset(&all) && none.is_subset(&all));
}

#[test]
fn the_crds_are_those_of_the_chosen_controllers_and_stay() {
    let Some(helm) = helm("crds") else { return };
    let objects = template(&helm, &[]);
    let rendered = of_kind(&objects, "CustomResourceDefinition");
    for crd in stanchion_api::crds() {
        let name = crd.metadata.name.as_deref().unwrap();
        let rendered = rendered
            .iter()
            .find(|object| object["metadata"]["name"] == name)
            .unwrap();
        assert_eq!(
            rendered["spec"],
            serde_json::to_value(&crd.spec).unwrap(),
            "{name}"
        );
        assert_eq!(
            rendered["metadata"]["annotations"]["helm.sh/resource-policy"],
            "keep"
        );
    }
    let only = [
        "--set",
        "controllers.supabase=false,controllers.policy=false,controllers.gitlab=false,crds.keep=false",
    ];
    let objects = template(&helm, &only);
    let rendered = of_kind(&objects, "CustomResourceDefinition");
    let names: Vec<&str> = rendered
        .iter()
        .map(|crd| crd["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names.iter().all(|name| name.ends_with(".db.example.com")),
        "{names:?}"
    );
    assert!(rendered[0]["metadata"]["annotations"]["helm.sh/resource-policy"].is_null());
    assert!(
        of_kind(
            &template(&helm, &["--set", "crds.enabled=false"]),
            "CustomResourceDefinition"
        )
        .is_empty()
    );
}

/// The program accepts every argument of every example.
#[test]
fn the_program_takes_the_arguments() {
    let Some(helm) = helm("arguments") else { return };
    for values in examples_of_values() {
        let objects = template(&helm, &["-f", values.to_str().unwrap()]);
        let deployment = of_kind(&objects, "Deployment")[0].clone();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let arguments = container["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap());
        // The URL of the default server is read before the cluster is contacted: only the last argument is wrong.
        let output = command(arguments.filter(|word| !word.starts_with("--postgres-url-file")))
            .arg("--postgres-url=postgres://x:y@/nowhere")
            .output()
            .unwrap();
        let said = crate::operator::text(&output.stderr);
        assert!(
            said.contains("--postgres-url cannot be used"),
            "{}: {said}",
            values.display()
        );
    }
}

/// Between them, the examples use every option that the template can give.
#[test]
fn the_examples_use_every_option_of_the_template() {
    let Some(helm) = helm("options") else { return };
    let template_text = std::fs::read_to_string(chart().join("templates/deployment.yaml")).unwrap();
    let options = |text: &str| -> BTreeSet<String> {
        let starts = text.match_indices("--").map(|(at, _)| &text[at..]);
        starts
            .map(|rest| {
                let end = rest.find(|c: char| c != '-' && !c.is_ascii_lowercase());
                rest[..end.unwrap_or(rest.len())].to_owned()
            })
            .filter(|option| option.len() > 3)
            .collect()
    };
    let given: BTreeSet<String> = examples_of_values()
        .iter()
        .flat_map(|values| {
            let objects = template(&helm, &["-f", values.to_str().unwrap()]);
            let deployment = of_kind(&objects, "Deployment")[0];
            options(&deployment["spec"]["template"]["spec"]["containers"][0]["args"].to_string())
        })
        .collect();
    let missing: Vec<String> = options(&template_text).difference(&given).cloned().collect();
    assert_eq!(
        missing,
        [] as [&str; 0],
        "no file of charts/stanchion/ci sets these"
    );
}

/// An API server accepts the objects of every example, and their pods meet the strictest standard. It does not know the
/// kinds of cert-manager and of the Prometheus operator.
#[tokio::test]
async fn an_api_server_takes_every_example() {
    let Some(helm) = helm("dry_run") else { return };
    let cluster = Cluster::shared().await;
    // The namespaces of the examples.
    let mut places = Vec::new();
    for (name, new) in [
        ("stanchion-system", "chart"),
        ("team-a", "team-a"),
        ("team-b", "team-b"),
    ] {
        places.push((name, cluster.namespace(new).await));
    }
    let restricted = [
        "label",
        "namespace",
        &places[0].1,
        "pod-security.kubernetes.io/warn=restricted",
    ];
    kubectl(cluster).run(&restricted).await.unwrap();
    for values in examples_of_values() {
        let rendered = template(&helm, &["-f", values.to_str().unwrap()]);
        let known = rendered.iter().filter(|object| {
            let version = object["apiVersion"].as_str().unwrap();
            !version.starts_with("monitoring.coreos.com") && !version.starts_with("cert-manager.io")
        });
        let texts: Vec<String> = known
            .map(|object| {
                places.iter().fold(object.to_string(), |text, (name, place)| {
                    text.replace(name, place)
                })
            })
            .collect();
        let apply = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "--validate=strict",
            "--warnings-as-errors",
            "-f",
            "-",
        ];
        let said = kubectl(cluster).run_with(&apply, &texts.join("\n---\n")).await;
        let said = said.unwrap_or_else(|error| panic!("{}: {error}", values.display()));
        assert!(said.lines().count() > 5, "{said}");
    }
}
