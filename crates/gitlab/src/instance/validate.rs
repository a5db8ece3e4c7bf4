//! Validates an object.

use kube::ResourceExt as _;
use stanchion_api::GitlabInstance;
use stanchion_api::gitlab::{Edition, GitlabInstanceSpec, patterns};
use stanchion_api::loose::Loose;
use stanchion_kernel::Problem;

use super::target::Wanted;
use crate::{names, values};

/// The reason of everything that only a change of the spec can fix.
pub(crate) const INVALID: &str = "InvalidSpec";

/// The target of an instance that is not being deleted.
pub(crate) fn validate(instance: &GitlabInstance) -> Result<Wanted, Problem> {
    let status = instance.status.as_ref();
    let version = status.and_then(|status| status.installed_version.as_ref());
    let wanted = Wanted {
        name: instance.name_any(),
        namespace: instance.namespace().unwrap_or_default(),
        spec: instance.spec.clone(),
        secrets: status.map(|status| status.secrets.clone()).unwrap_or_default(),
        installed: version.and_then(|version| version.parse().ok()),
        has_run: status.is_some_and(|status| version.or(status.observed_version.as_ref()).is_some()),
    };
    if let Some(words) = names::too_long(&wanted, None) {
        return Err(invalid(words));
    }
    check(&wanted.spec)?;
    Ok(wanted)
}

fn check(spec: &GitlabInstanceSpec) -> Result<(), Problem> {
    // The schema accepts any object there.
    if let Some(error) = spec.tolerations.iter().find_map(Loose::misfit) {
        return Err(invalid(format!("spec.tolerations: {error}")));
    }
    if spec.domains.gitlab.trim().is_empty() {
        return Err(invalid("domains.gitlab is empty: set the host name of GitLab"));
    }
    texts(spec)?;
    let licensed = spec.license_secret.as_ref().is_some_and(|name| !name.is_empty());
    if spec.edition == Edition::Ee && !licensed {
        return Err(invalid(
            "edition ee needs licenseSecret: the name of a Secret with the key license",
        ));
    }
    let values = &spec.helm.values;
    let (postgres, redis) = (&spec.postgres, &spec.redis);
    let backends = [
        (
            "postgres",
            postgres.managed,
            postgres.credentials_secret.as_ref(),
            values::psql_host(values).is_some(),
        ),
        (
            "redis",
            redis.managed,
            redis.credentials_secret.as_ref(),
            values::names_redis(values),
        ),
    ];
    for (field, managed, secret, in_values) in backends {
        if managed && secret.is_some() {
            return Err(invalid(format!(
                "{field}.managed and {field}.credentialsSecret exclude each other: keep one of them"
            )));
        }
        if !managed && secret.is_none() && !in_values {
            return Err(invalid(format!(
                "{field} has no source: set {field}.managed, or {field}.credentialsSecret, or helm.values for it"
            )));
        }
    }
    Ok(())
}

/// Strings that reach the chart, and names of objects: an older CRD may have accepted what the current one refuses.
fn texts(spec: &GitlabInstanceSpec) -> Result<(), Problem> {
    let domains = &spec.domains;
    let hosts = [
        ("gitlab", Some(&domains.gitlab)),
        ("registry", domains.registry.as_ref()),
        ("kas", domains.kas.as_ref()),
        ("pages", domains.pages.as_ref()),
    ];
    for (field, host) in hosts {
        if host.is_some_and(|host| !patterns::is_host(host)) {
            return Err(invalid(format!(
                "domains.{field} is not a host: write lower-case letters, digits, hyphens and dots, such as git.example.com, \
                 without a scheme, a port, a path or a wildcard"
            )));
        }
    }
    let names = [
        ("profile", spec.profile.as_ref()),
        (
            "licenseSecret",
            spec.license_secret.as_ref().filter(|name| !name.is_empty()),
        ),
        (
            "postgres.credentialsSecret",
            spec.postgres.credentials_secret.as_ref(),
        ),
        ("redis.credentialsSecret", spec.redis.credentials_secret.as_ref()),
        (
            "objectStorage.credentialsSecret",
            spec.object_storage.credentials_secret.as_ref(),
        ),
        ("smtp.credentialsSecret", spec.smtp.credentials_secret.as_ref()),
        (
            "helm.repository.credentialsSecret",
            spec.helm
                .repository
                .as_ref()
                .and_then(|repository| repository.credentials_secret.as_ref()),
        ),
    ];
    for (field, name) in names {
        if name.is_some_and(|name| !patterns::is_name(name)) {
            return Err(invalid(format!(
                "{field} is not the name of an object of Kubernetes"
            )));
        }
    }
    if spec
        .backup_schedule
        .as_ref()
        .is_some_and(|line| !patterns::is_cron(line))
    {
        return Err(invalid(
            "backupSchedule is not a cron line: write five fields, such as 30 2 * * *",
        ));
    }
    if !patterns::are_labels(&spec.node_selector) {
        return Err(invalid("nodeSelector contains an invalid label"));
    }
    let mut tolerations = spec.tolerations.iter().filter_map(Loose::get);
    if !tolerations.all(patterns::is_toleration) {
        return Err(invalid("tolerations: invalid key, operator, value or effect"));
    }
    Ok(())
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::permanent(INVALID, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use stanchion_kernel::Reconciler as _;

    use super::super::GitlabController;
    use super::*;

    type Change = fn(&mut Value);

    fn instance(change: impl FnOnce(&mut Value)) -> GitlabInstance {
        let mut object = json!({
            "apiVersion": "k8s.bnerd.com/v1alpha1", "kind": "GitlabInstance", "metadata": { "name": "shop" },
            "spec": {
                "domains": { "gitlab": "git.example.com" },
                "postgres": { "credentialsSecret": "pg" },
                "redis": { "managed": true },
            },
        });
        change(&mut object);
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn what_cannot_work_is_refused_with_what_to_change() {
        assert!(validate(&instance(|_| {})).is_ok());
        let cases: &[(Change, &str)] = &[
            (|it| it["metadata"]["name"] = json!("x".repeat(41)), "at most 40"),
            (
                |it| it["spec"]["domains"]["gitlab"] = json!(" "),
                "domains.gitlab",
            ),
            (
                |it| it["spec"]["domains"]["gitlab"] = json!("https://git.example.com"),
                "domains.gitlab is not a host",
            ),
            (
                |it| it["spec"]["domains"]["pages"] = json!("*.example.com"),
                "domains.pages is not a host",
            ),
            (
                |it| it["spec"]["backupSchedule"] = json!("every night"),
                "backupSchedule",
            ),
            (
                |it| it["spec"]["nodeSelector"] = json!({ "pool": "{{ x }}" }),
                "nodeSelector",
            ),
            (
                |it| it["spec"]["tolerations"] = json!([{ "key": "a" }, { "key": "{{ x }}" }]),
                "tolerations",
            ),
            (
                |it| it["spec"]["tolerations"] = json!([{ "key": "a", "value": "{{ x }}" }]),
                "tolerations",
            ),
            (
                |it| it["spec"]["postgres"]["credentialsSecret"] = json!("../other/pg"),
                "postgres.credentialsSecret",
            ),
            (|it| it["spec"]["edition"] = json!("ee"), "licenseSecret"),
            (|it| it["spec"]["redis"] = json!({}), "redis has no source"),
            (
                |it| it["spec"]["postgres"]["managed"] = json!(true),
                "exclude each other",
            ),
        ];
        for (change, words) in cases {
            let problem = validate(&instance(change)).err().unwrap();
            assert_eq!(problem.reason, INVALID);
            assert!(problem.message.contains(words), "{problem}");
        }
    }

    #[test]
    fn values_may_say_where_a_backend_is() {
        let by_values = instance(|it| {
            it["spec"]["postgres"] = json!({});
            it["spec"]["helm"] = json!({ "values": { "global": { "psql": { "host": "pg.example.com" } } } });
        });
        assert!(validate(&by_values).is_ok());
    }

    #[test]
    fn one_that_is_suspended_is_left_alone_whatever_it_says() {
        let suspended = instance(|it| {
            it["spec"]["suspend"] = json!(true);
            it["spec"]["redis"] = json!({});
        });
        assert!(GitlabController::is_suspended(&suspended));
    }
}
