//! Makes a reconcile of an unchanged policy cost one statement and no API call.
//!
//! After a reconcile that left nothing to do, this remembers its inputs: the generation, the names of the objects that
//! were read, and a digest of everything that was inspected in the catalog. While no watch reports a change and the
//! digest is the same, the next reconcile would decide the same. Nothing here is needed after a restart.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use parking_lot::Mutex;
use stanchion_api::PostgresPolicyPlan;
use stanchion_api::policy::condition;
use stanchion_kernel::condition::is_true;
use stanchion_kernel::watch::dependencies::Key;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::{ConnectionConfig, Identity};
use stanchion_roles::inspect::{self, InspectionDigest, Needs};

use crate::policy::target::Wanted;
use crate::problems;
use crate::setup::Setup;

/// The inputs of a decision.
pub(crate) struct ConvergedInputs {
    /// The policy's uid.
    pub uid: String,
    pub generation: i64,
    /// The annotation that requests a reconcile.
    pub requested: Option<String>,
    /// The connection to the database.
    pub target: ConnectionConfig,
    /// Identity of the database.
    pub identity: Identity,
    /// What was inspected.
    pub needs: Arc<Needs>,
    pub digest: InspectionDigest,
    /// The objects that were read.
    pub read: Names,
}

/// Names of the objects that were read.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub secrets: Vec<String>,
    pub config_maps: Vec<String>,
    pub plans: Vec<String>,
}

/// The remembered inputs of one controller's policies.
#[derive(Default)]
pub(crate) struct ConvergedCache(Mutex<HashMap<Key, Arc<ConvergedInputs>>>);

impl ConvergedCache {
    /// Remembers the inputs of a policy that has converged.
    pub(crate) fn remember(&self, key: &Key, inputs: ConvergedInputs) {
        self.0.lock().insert(key.clone(), Arc::new(inputs));
    }

    /// Forgets a policy that is gone, or whose reconcile found a change or failed: the next one reads everything.
    pub(crate) fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    /// Whether nothing has changed since the remembered reconcile. In doubt, it has. A reconcile that did not end, such
    /// as one that exceeded its deadline, has forgotten nothing, but left the policy not ready.
    pub(crate) async fn is_unchanged(
        &self,
        setup: &Setup,
        read: &Reader,
        wanted: &Wanted,
    ) -> Result<bool, Problem> {
        let Some(inputs) = self.0.lock().get(&wanted.who.key).cloned() else {
            return Ok(false);
        };
        let same = is_true(
            &wanted.before.conditions,
            condition::READY,
            Some(wanted.generation),
        ) && inputs.uid == wanted.who.uid
            && inputs.generation == wanted.generation
            && inputs.requested == wanted.requested
            && !setup.claims.is_contested(&wanted.who.key)
            && inputs.read.are_unchanged(read);
        if !same {
            return Ok(false);
        }
        let connected = setup.pools.read_only(&inputs.target).await;
        let session = connected.map_err(|error| problems::of_postgres(error, problems::During::Connect))?;
        if *session.identity() != inputs.identity {
            return Ok(false);
        }
        // Privileges may have changed, too: the full reconcile reports that better.
        let unchanged = inspect::is_unchanged(&session, &inputs.needs, &inputs.digest).await;
        Ok(unchanged.unwrap_or(false))
    }
}

impl Names {
    /// Checks every object, so that each stays registered as a dependency.
    fn are_unchanged(&self, read: &Reader) -> bool {
        let secrets = self.secrets.iter().map(|name| read.is_unchanged::<Secret>(name));
        let config_maps = self
            .config_maps
            .iter()
            .map(|name| read.is_unchanged::<ConfigMap>(name));
        let plans = self
            .plans
            .iter()
            .map(|name| read.is_unchanged::<PostgresPolicyPlan>(name));
        secrets
            .chain(config_maps)
            .chain(plans)
            .fold(true, |all, one| all & one)
    }
}
