//! Limits what a project may request of its pods. The operator creates them with its own permissions, so it grants
//! nothing that the namespace refuses, and no image that the administrator does not allow.
//!
//! The API server enforces a namespace's Pod Security level on pods, but not on Deployments: the project would wait for
//! pods that never come. So the same rules are checked here, for the fields of the spec.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use serde::Serialize;
use serde_json::Value;
use stanchion_api::SupabaseProjectSpec;
use stanchion_api::supabase::Options;
use stanchion_kernel::problem::Cause;
use stanchion_kernel::{Problem, Reader};

use super::target::Wanted;
use crate::components;

/// The namespace label with its Pod Security level.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

/// The Pod Security level of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Unrestricted.
    Privileged,
    /// No known privilege escalation.
    Baseline,
    /// The fewest privileges.
    Restricted,
}

impl Level {
    fn of(labels: &BTreeMap<String, String>) -> Self {
        match labels.get(ENFORCE).map(String::as_str) {
            Some("restricted") => Self::Restricted,
            Some("baseline") => Self::Baseline,
            _ => Self::Privileged,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// Refuses images that the administrator does not allow. Without a list every image is allowed; the operator's own
/// defaults always are.
pub(crate) fn images(spec: &SupabaseProjectSpec, allowed: &[String]) -> Result<(), Problem> {
    if allowed.is_empty() {
        return Ok(());
    }
    for (component, options) in components::wanted(spec) {
        let Some(image) = options.image.as_deref().filter(|image| *image != component.image) else {
            continue;
        };
        if !allowed.iter().any(|prefix| is_below(image, prefix)) {
            let message = format!(
                "spec.{}.image: {image:?} is not among the images that the operator's administrator allows: {}",
                component.field,
                allowed.join(", ")
            );
            return Err(Problem::permanent("ImageNotAllowed", message));
        }
    }
    Ok(())
}

/// Whether an image has a prefix that ends at a boundary of its name.
fn is_below(image: &str, prefix: &str) -> bool {
    image.strip_prefix(prefix).is_some_and(|rest| {
        rest.is_empty() || prefix.ends_with(['/', ':']) || rest.starts_with(['/', ':', '@'])
    })
}

/// Refuses what the namespace's Pod Security level forbids. The namespace is read only if the spec requests anything.
pub(crate) async fn pods(reader: &Reader, wanted: &Wanted) -> Result<(), Problem> {
    if !components::wanted(&wanted.spec).any(|(_, options)| asks(options)) {
        return Ok(());
    }
    let level = match reader.get_cluster_wide::<Namespace>(&wanted.namespace).await {
        Ok(namespace) => namespace.map_or(Level::Privileged, |namespace| {
            Level::of(&namespace.metadata.labels.unwrap_or_default())
        }),
        // An operator with access to few namespaces may not read it: the API server still refuses the pods.
        Err(problem) if problem.is(Cause::Forbidden) => return Ok(()),
        Err(problem) => return Err(problem),
    };
    check(&wanted.spec, level)
}

fn asks(options: &Options) -> bool {
    options.security_context.is_some()
        || options.pod_security_context.is_some()
        || !options.pod_annotations.is_empty()
}

/// The same, for a known level.
pub(crate) fn check(spec: &SupabaseProjectSpec, level: Level) -> Result<(), Problem> {
    for (component, options) in components::wanted(spec) {
        if let Some((field, why)) = forbidden(options, level) {
            let message = format!(
                "spec.{}.{field}: {why}, which the namespace forbids: its label {ENFORCE} is {}",
                component.field,
                level.as_str()
            );
            return Err(Problem::permanent("PodSecurityViolation", message));
        }
    }
    Ok(())
}

/// The capabilities that baseline allows.
const BASELINE_CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
const RESTRICTED_CAPABILITIES: &[&str] = &["NET_BIND_SERVICE"];
const SELINUX_TYPES: &[&str] = &[
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];
const SAFE_SYSCTLS: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
];
const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The field, and the value that the level forbids.
fn forbidden(options: &Options, level: Level) -> Option<(&'static str, String)> {
    if level == Level::Privileged {
        return None;
    }
    let container = plain(options.security_context.as_ref());
    let pod = plain(options.pod_security_context.as_ref());
    for (field, context) in [("securityContext", &container), ("podSecurityContext", &pod)] {
        if let Some(why) = in_either(context, level).or_else(|| in_container(context, level)) {
            return Some((field, why));
        }
    }
    let unsafe_sysctl = items(&pod, "/sysctls").find_map(|item| {
        let name = item.get("name")?.as_str()?;
        (!SAFE_SYSCTLS.contains(&name)).then(|| format!("it sets the sysctl {name}"))
    });
    if let Some(why) = unsafe_sysctl {
        return Some(("podSecurityContext", why));
    }
    let mut profiles = options.pod_annotations.iter();
    let unconfined = profiles.any(|(name, value)| {
        name.starts_with(APPARMOR) && value != "runtime/default" && !value.starts_with("localhost/")
    });
    unconfined.then(|| ("podAnnotations", "it switches AppArmor off".to_owned()))
}

/// Fields of both contexts.
fn in_either(context: &Value, level: Level) -> Option<String> {
    let text = |path: &str| context.pointer(path).and_then(Value::as_str);
    for (profile, name) in [
        ("/seccompProfile/type", "seccomp"),
        ("/appArmorProfile/type", "AppArmor"),
    ] {
        if text(profile) == Some("Unconfined") {
            return Some(format!("it switches {name} off"));
        }
    }
    if text("/seLinuxOptions/type").is_some_and(|kind| !SELINUX_TYPES.contains(&kind))
        || text("/seLinuxOptions/user").is_some_and(|user| !user.is_empty())
        || text("/seLinuxOptions/role").is_some_and(|role| !role.is_empty())
    {
        return Some("it sets SELinux options".to_owned());
    }
    if context.pointer("/windowsOptions/hostProcess") == Some(&Value::Bool(true)) {
        return Some("it asks for a process of the host".to_owned());
    }
    if level < Level::Restricted {
        return None;
    }
    if context.pointer("/runAsNonRoot") == Some(&Value::Bool(false)) {
        return Some("it may run as root".to_owned());
    }
    (context.pointer("/runAsUser").and_then(Value::as_i64) == Some(0)).then(|| "it runs as root".to_owned())
}

/// Fields of a container's context.
fn in_container(context: &Value, level: Level) -> Option<String> {
    if context.pointer("/privileged") == Some(&Value::Bool(true)) {
        return Some("it is privileged".to_owned());
    }
    let mount = context.pointer("/procMount").and_then(Value::as_str);
    if mount.is_some_and(|mount| mount != "Default") {
        return Some("it unmasks /proc".to_owned());
    }
    let allowed = if level == Level::Restricted {
        RESTRICTED_CAPABILITIES
    } else {
        BASELINE_CAPABILITIES
    };
    let added = items(context, "/capabilities/add").filter_map(Value::as_str);
    if let Some(capability) = added.into_iter().find(|capability| !allowed.contains(capability)) {
        return Some(format!("it adds the capability {capability}"));
    }
    if level < Level::Restricted {
        return None;
    }
    if context.pointer("/allowPrivilegeEscalation") == Some(&Value::Bool(true)) {
        return Some("it allows privilege escalation".to_owned());
    }
    let replaced = context.get("capabilities").is_some();
    let drops_all = items(context, "/capabilities/drop").any(|capability| capability == "ALL");
    (replaced && !drops_all).then(|| "it does not drop all capabilities".to_owned())
}

fn items<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value
        .pointer(path)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn plain(context: Option<&impl Serialize>) -> Value {
    context
        .and_then(|context| serde_json::to_value(context).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::components::test_fixture::fixture;

    fn verdict(kong: &Value, level: Level) -> Option<String> {
        let fixture = fixture(|spec| spec["kong"] = kong.clone());
        check(&fixture.spec, level).err().map(|problem| {
            assert_eq!(problem.reason, "PodSecurityViolation");
            problem.message
        })
    }

    #[test]
    fn a_namespace_grants_what_it_grants_to_anybody() {
        let container = |context: Value| json!({ "securityContext": context });
        let pod = |context: Value| json!({ "podSecurityContext": context });
        let baseline = [
            container(json!({ "privileged": true })),
            container(json!({ "capabilities": { "add": ["SYS_ADMIN"] } })),
            container(json!({ "procMount": "Unmasked" })),
            container(json!({ "seccompProfile": { "type": "Unconfined" } })),
            pod(json!({ "seLinuxOptions": { "type": "spc_t" } })),
            pod(json!({ "sysctls": [{ "name": "kernel.msgmax", "value": "1" }] })),
            pod(json!({ "windowsOptions": { "hostProcess": true } })),
            json!({ "podAnnotations": { "container.apparmor.security.beta.kubernetes.io/kong": "unconfined" } }),
        ];
        let restricted = [
            container(json!({ "runAsUser": 0 })),
            container(json!({ "runAsNonRoot": false })),
            container(json!({ "allowPrivilegeEscalation": true })),
            container(json!({ "capabilities": { "add": ["CHOWN"], "drop": ["ALL"] } })),
            container(json!({ "capabilities": { "drop": ["KILL"] } })),
            pod(json!({ "runAsUser": 0 })),
        ];
        let fine = [
            container(json!({ "readOnlyRootFilesystem": true, "runAsUser": 7 })),
            container(json!({ "capabilities": { "add": ["NET_BIND_SERVICE"], "drop": ["ALL"] } })),
            pod(json!({ "fsGroup": 8, "seccompProfile": { "type": "RuntimeDefault" } })),
            json!({ "podAnnotations": { "team": "shop" } }),
        ];
        for asked in &baseline {
            assert!(verdict(asked, Level::Baseline).is_some(), "{asked}");
            assert!(verdict(asked, Level::Restricted).is_some(), "{asked}");
            assert_eq!(verdict(asked, Level::Privileged), None);
        }
        for asked in &restricted {
            assert_eq!(verdict(asked, Level::Baseline), None, "{asked}");
            let said = verdict(asked, Level::Restricted).unwrap();
            assert!(said.starts_with("spec.kong."), "{said}");
        }
        for asked in &fine {
            assert_eq!(verdict(asked, Level::Restricted), None, "{asked}");
        }
    }

    #[test]
    fn images_are_those_of_the_administrators_list() {
        let allowed = |image: &str, list: &[&str]| {
            let fixture = fixture(|spec| spec["kong"] = json!({ "image": image }));
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            images(&fixture.spec, &list).is_ok()
        };
        assert!(allowed("anything:1", &[]));
        assert!(allowed("mirror.example.com/kong:1", &["mirror.example.com/"]));
        assert!(allowed(
            "mirror.example.com/kong:1",
            &["other/", "mirror.example.com"]
        ));
        assert!(allowed("team/kong@sha256:0", &["team/kong"]));
        assert!(!allowed("team/kong-evil:1", &["team/kong"]));
        assert!(!allowed(
            "mirror.example.com.evil.com/kong:1",
            &["mirror.example.com"]
        ));
        assert!(!allowed("evil/kong:1", &["mirror.example.com/"]));
        // The operator's own default is always allowed.
        assert!(allowed(
            stanchion_api::supabase::image::KONG,
            &["mirror.example.com/"]
        ));
    }
}
