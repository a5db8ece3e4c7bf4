//! The database: managed by Percona's operator, provided, or configured in the chart's values.

use kube::core::DynamicObject;

use super::super::observe::Current;
use super::super::target::Wanted;
use super::{Blocker, Check, named};
use crate::backends::kinds::PERCONA;
use crate::backends::request::BackendRequest;
use crate::backends::{Readiness, external, percona};
use crate::login::Psql;

/// The login to the database.
pub(super) fn find(wanted: &Wanted, current: &Current, requests: &BackendRequest<'_>) -> Check<Option<Psql>> {
    let postgres = &wanted.spec.postgres;
    if postgres.managed {
        return managed(wanted, current, requests).map(Some);
    }
    let Some(name) = &postgres.credentials_secret else {
        return Ok(None);
    };
    let secret = named(&current.secrets, name, "PostgresSecretMissing", "postgres")?;
    external::psql(secret)
        .map(Some)
        .map_err(|error| Blocker::failed("PostgresSecretIncomplete", error.to_string()))
}

fn managed(wanted: &Wanted, current: &Current, requests: &BackendRequest<'_>) -> Check<Psql> {
    let found = current.backend(&PERCONA);
    let Some(served) = &found.served else {
        return Err(Blocker::operator_missing(
            "PostgresOperatorMissing",
            "postgres",
            &[&PERCONA],
        ));
    };
    let waits = |why: String| Blocker::provisioning("PostgresProvisioning", why);
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
    let secret = current.secrets.get(&secret);
    let secret = secret.ok_or_else(|| {
        waits(format!(
            "PerconaPGCluster {name} is ready, and its Secret {} is not there yet",
            percona::secret_name(&wanted.name)
        ))
    })?;
    // Use the actual state of the cluster, not the requested one, which may be ahead.
    let pooled = cluster.data.pointer("/spec/proxy/pgBouncer").is_some() && requests.postgres(0).pgbouncer;
    percona::psql(secret, pooled).map_err(|error| waits(error.to_string()))
}
