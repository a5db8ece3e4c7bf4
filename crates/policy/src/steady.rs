//! What makes a pass over an unchanged policy cost one statement and no API call.
//!
//! After a pass that left nothing to do, this remembers what was decided from: the generation, the names of what was
//! read, and a mark of everything in the catalog that was looked at. As long as no watch has told of a change and the
//! mark is the same, the next pass would decide the same. Nothing here is needed after a restart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use stanchion_api::PostgresPolicyPlan;
use stanchion_kernel::watch::references::Key;
use stanchion_kernel::{Problem, Reader};
use stanchion_postgres::{Identity, Target};
use stanchion_roles::inspect::{self, Mark, Needs};

use crate::problems;
use crate::setup::Setup;
use crate::target::Wanted;

/// What was decided from.
#[derive(Clone)]
pub struct Basis {
    /// The policy's uid.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// The annotation that asks for a look.
    pub requested: Option<String>,
    /// How to get to the database.
    pub target: Target,
    /// Which one it was.
    pub identity: Identity,
    /// What was looked at.
    pub needs: Arc<Needs>,
    /// What was seen.
    pub mark: Mark,
    /// What was read.
    pub read: Names,
}

/// Names of what was read.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Secrets.
    pub secrets: Vec<String>,
    /// `ConfigMaps`.
    pub config_maps: Vec<String>,
    /// Plans.
    pub plans: Vec<String>,
}

/// The bases of one controller's policies.
#[derive(Default)]
pub struct Steady(Mutex<HashMap<Key, Arc<Basis>>>);

impl Steady {
    /// Remembers what a policy was decided from.
    pub fn remember(&self, key: &Key, basis: Basis) {
        self.lock().insert(key.clone(), Arc::new(basis));
    }

    /// Forgets it: the next pass looks at everything.
    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Whether nothing has changed since. Whatever is in doubt has.
    pub async fn holds(&self, setup: &Setup, read: &Reader, wanted: &Wanted) -> Result<bool, Problem> {
        let Some(basis) = self.lock().get(&wanted.who.key).cloned() else {
            return Ok(false);
        };
        let same = basis.uid == wanted.who.uid
            && basis.generation == wanted.generation
            && basis.requested == wanted.requested
            && !setup.claims.is_contested(&wanted.who.key)
            && basis.read.are_unchanged(read);
        // Whatever this one finds, it is decided anew from what it finds.
        if !same {
            self.forget(&wanted.who.key);
            return Ok(false);
        }
        let connected = setup.pools.get(&basis.target).await;
        let session = connected.map_err(|error| self.lost(wanted, error))?;
        if *session.identity() != basis.identity {
            self.forget(&wanted.who.key);
            return Ok(false);
        }
        // Rights may have changed, too: the pass that looks at everything says so better.
        let unchanged = inspect::is_unchanged(&session, &basis.needs, &basis.mark).await;
        let unchanged = unchanged.unwrap_or(false);
        if !unchanged {
            self.forget(&wanted.who.key);
        }
        Ok(unchanged)
    }

    fn lost(&self, wanted: &Wanted, error: stanchion_postgres::Error) -> Problem {
        self.forget(&wanted.who.key);
        problems::of_postgres(error, problems::CONNECTION)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Basis>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Names {
    /// Every one is asked, so that every one goes on to wake.
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
