//! What goes with an instance, in which order. GitLab goes before what it reads: its pods would fail while they are
//! stopped. Databases and users' Secrets stay.

use kube::core::{ApiResource, DynamicObject};
use stanchion_kernel::Problem;

use super::findings::Obstacle;
use super::observe::Remains;
use super::plan::{self, Deed, Plan};
use super::secrets;
use crate::account;
use crate::flux::Release;

/// What is to be done next.
pub fn plan(instance: &str, remains: &Remains) -> Result<Plan, Problem> {
    if let Some((kind, release)) = &remains.release {
        let mut plan = uninstall(&kind.resource, release);
        // Flux uninstalls as the account that the release names, and leaves everything behind without it.
        let named = Release::of(release).account;
        if named == Some(account::name(instance)) && remains.account.somebody_elses(instance).is_none() {
            let account = plan::make_account(instance, &remains.account, &remains.subject)?;
            plan.deeds.splice(0..0, account);
        }
        return Ok(plan);
    }
    let ours = secrets::names(instance);
    let secrets = remains.secrets.iter().filter(|secret| {
        // The list is in the status: a name that we would not give is nobody's wish.
        let name = secret.metadata.name.as_ref();
        name.is_some_and(|name| ours.contains(name))
    });
    let secrets = secrets.map(|secret| Deed::RemoveSecret(Box::new(secret.metadata.clone())));
    let account = plan::remove_account(instance, &remains.account);
    Ok(Plan {
        deeds: secrets.chain(account).collect(),
        obstacle: None,
    })
}

/// Flux leaves what it has installed where it is when a release goes that is suspended. GitLab would then run on without
/// what it reads, so that is for a person to decide.
fn uninstall(kind: &ApiResource, release: &DynamicObject) -> Plan {
    let Release {
        object: name,
        suspended,
        leaving,
        ..
    } = Release::of(release);
    if suspended && !leaving {
        let words = format!(
            "HelmRelease {name} is suspended, and Flux would uninstall nothing: flux resume lets GitLab go; \
             delete the HelmRelease to leave GitLab behind, without the Secrets of its buckets"
        );
        return Plan {
            deeds: Vec::new(),
            obstacle: Some(Obstacle::pending("ReleaseSuspended", words)),
        };
    }
    let words = format!(
        "Flux uninstalls HelmRelease {name}. If Flux is no longer there, take the finalizers off that object"
    );
    let deed = Deed::Uninstall(kind.clone(), Box::new(release.clone()));
    Plan {
        deeds: if leaving { Vec::new() } else { vec![deed] },
        obstacle: Some(Obstacle::pending("Uninstalling", words)),
    }
}
