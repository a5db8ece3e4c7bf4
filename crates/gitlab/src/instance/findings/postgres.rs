//! The database: managed by Percona's operator, provided, or configured in the chart's values.

use kube::core::DynamicObject;

use super::super::observe::Seen;
use super::super::target::Wanted;
use super::{Finding, Obstacle, named};
use crate::backends::kinds::PERCONA;
use crate::backends::wish::Asking;
use crate::backends::{Readiness, brought, percona};
use crate::login::Psql;

/// The login to the database.
pub(super) fn find(wanted: &Wanted, seen: &Seen, asking: &Asking<'_>) -> Finding<Option<Psql>> {
    let postgres = &wanted.spec.postgres;
    if postgres.managed {
        return managed(wanted, seen, asking).map(Some);
    }
    let Some(name) = &postgres.credentials_secret else {
        return Ok(None);
    };
    let secret = named(&seen.secrets, name, "PostgresSecretMissing", "postgres")?;
    brought::psql(secret)
        .map(Some)
        .map_err(|error| Obstacle::failed("PostgresSecretIncomplete", error.to_string()))
}

fn managed(wanted: &Wanted, seen: &Seen, asking: &Asking<'_>) -> Finding<Psql> {
    let found = seen.backend(&PERCONA);
    let Some(served) = &found.served else {
        return Err(Obstacle::operator_missing(
            "PostgresOperatorMissing",
            "postgres",
            &[&PERCONA],
        ));
    };
    let waits = |why: String| Obstacle::provisioning("PostgresProvisioning", why);
    let name = percona::name(&wanted.name);
    // An object that this reconcile creates is not ready yet.
    let cluster = found
        .object
        .clone()
        .unwrap_or_else(|| DynamicObject::new(&name, &served.resource));
    if let Readiness::NotYet(why) = percona::readiness(&cluster) {
        return Err(waits(why));
    }
    let secret = percona::secret_name(&wanted.name);
    let secret = seen.secrets.get(&secret);
    let secret = secret.ok_or_else(|| {
        waits(format!(
            "PerconaPGCluster {name} is ready, and its Secret {} is not there yet",
            percona::secret_name(&wanted.name)
        ))
    })?;
    // Use the actual state of the cluster, not the requested one, which may be ahead.
    let pooled = cluster.data.pointer("/spec/proxy/pgBouncer").is_some() && asking.postgres(0).pgbouncer;
    percona::psql(secret, pooled).map_err(|error| waits(error.to_string()))
}
