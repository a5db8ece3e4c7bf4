//! Checks of RBAC for the operator's `ServiceAccount`.

use super::{Fault, Outcome, installations, need};
use crate::doctor::permissions::{self, Permission};
use crate::doctor::snapshot::{Installation, Snapshot};
use crate::{controllers, rbac};

/// The permissions that an installation needs.
fn needed(installation: &Installation<'_>) -> Result<Vec<Permission>, String> {
    let arguments = rbac::Arguments::for_account(
        controllers::Choice::of(&installation.controllers()),
        &installation.namespaces(),
        (installation.namespace, installation.service_account()),
    );
    let objects = rbac::objects(&arguments).map_err(|error| error.to_string())?;
    let permissions = permissions::of(&objects, installation.namespace, installation.service_account());
    // A mounted certificate and disabled webhooks need no permissions.
    let without_webhooks = |permission: &Permission| {
        let groups = [
            "admissionregistration.k8s.io",
            "authentication.k8s.io",
            "authorization.k8s.io",
        ];
        installation.has_webhooks() || !groups.contains(&permission.1.as_str())
    };
    let certificate = |permission: &Permission| permission.3 != crate::run::CERTIFICATE;
    Ok(permissions
        .into_iter()
        .filter(without_webhooks)
        .filter(certificate)
        .collect())
}

pub(super) fn missing(snapshot: &Snapshot) -> Outcome {
    let objects = need("roles and bindings", &snapshot.rbac)?;
    let mut faults = Vec::new();
    for installation in installations(snapshot)? {
        let has = permissions::of(objects, installation.namespace, installation.service_account());
        let needed = needed(&installation)?;
        let missing: Vec<&Permission> = needed
            .iter()
            .filter(|permission| !permissions::has(&has, permission))
            .collect();
        if !missing.is_empty() {
            let account = format!("{}/{}", installation.namespace, installation.service_account());
            let mut words = vec![format!("stanchion rbac --service-account {account}")];
            if !installation.controllers().is_empty() {
                words.push(format!("--controllers {}", installation.controllers().join(",")));
            }
            words.extend(
                installation
                    .namespaces()
                    .iter()
                    .map(|name| format!("--namespace {name}")),
            );
            faults.push(Fault {
                subject: format!("ServiceAccount {account}"),
                message: format!(
                    "lacks permissions that the operator needs: {}",
                    permissions::words(&missing)
                ),
                remedy: format!("{} | kubectl apply --server-side -f -", words.join(" ")),
            });
        }
    }
    Ok(faults)
}

pub(super) fn wildcard(snapshot: &Snapshot) -> Outcome {
    let objects = need("roles and bindings", &snapshot.rbac)?;
    let mut faults = Vec::new();
    for installation in installations(snapshot)? {
        let has = permissions::of(objects, installation.namespace, installation.service_account());
        let wild = has.iter().any(|permission| {
            [&permission.1, &permission.2, &permission.4]
                .iter()
                .any(|word| *word == "*")
        });
        if wild {
            let account = format!("{}/{}", installation.namespace, installation.service_account());
            faults.push(Fault {
                subject: format!("ServiceAccount {account}"),
                message:
                    "has permissions with a wildcard, such as cluster-admin; the operator does not need them"
                        .to_owned(),
                remedy: "kubectl get clusterrolebindings -o wide; then delete the binding".to_owned(),
            });
        }
    }
    Ok(faults)
}
