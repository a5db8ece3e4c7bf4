//! PostgreSQL, run by Percona's operator.
//!
//! GitLab's migrations expect its tables in the schema `public`, and one of its extensions needs a superuser: without
//! both, the first migration fails.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::kinds::{PERCONA, object};
use super::pods::claim;
use super::request::PostgresRequest;
use super::{DATABASE, Readiness, USERNAME, observed, text};
use crate::login::Psql;
use crate::secret_keys::{Keys, Unusable};

/// Default disk size of a server, and of the backups.
const DISK: &str = "20Gi";
/// Number of poolers, so that one can be replaced while the other works.
const POOLERS: u32 = 2;
/// The key of the initial statements.
const INIT: &str = "init.sql";
/// Extensions that GitLab needs. The owner of the database may not create the last one.
const EXTENSIONS: [&str; 3] = ["pg_trgm", "btree_gist", "amcheck"];
/// The first version in which PUBLIC may not create in `public` by default.
const CLOSED_PUBLIC: u32 = 15;

/// The images of each major version, as of version 3.0.0 of the operator. Its plain installation has no default images:
/// a cluster without images never starts. Major versions that are not listed are left to an operator that has defaults.
const IMAGES: [(u32, &str); 5] = [
    (14, "docker.io/percona/percona-distribution-postgresql:14.23-1"),
    (15, "docker.io/percona/percona-distribution-postgresql:15.18-1"),
    (16, "docker.io/percona/percona-distribution-postgresql:16.14-1"),
    (17, "docker.io/percona/percona-distribution-postgresql:17.10-1"),
    (18, "docker.io/percona/percona-distribution-postgresql:18.4-1"),
];
const PGBOUNCER_IMAGE: &str = "docker.io/percona/percona-pgbouncer:1.25.2-1";
const PGBACKREST_IMAGE: &str = "docker.io/percona/percona-pgbackrest:2.58.0-2";

/// The name of an instance's cluster.
pub(crate) fn name(instance: &str) -> String {
    format!("{instance}-pg")
}

/// The name of the Secret that Percona's operator creates for GitLab's role.
pub fn secret_name(instance: &str) -> String {
    format!("{}-pguser-{USERNAME}", name(instance))
}

/// The name of the `ConfigMap` with the initial statements.
pub(crate) fn init_name(instance: &str) -> String {
    format!("{}-init", name(instance))
}

pub fn cluster(request: &PostgresRequest<'_>) -> Value {
    let mut user = json!({
        "name": USERNAME,
        "databases": [DATABASE],
        "password": { "type": "AlphaNumeric" },
    });
    if request.version >= CLOSED_PUBLIC {
        user["grantPublicSchemaAccess"] = json!(true);
    }
    let mut server = json!({
        "name": "instance1",
        "replicas": request.servers,
        "dataVolumeClaimSpec": claim(request.storage, DISK),
    });
    request.placement.place_by_affinity(&mut server);
    let mut spec = json!({
        "postgresVersion": request.version,
        "autoCreateUserSchema": false,
        "users": [user],
        "databaseInitSQL": { "name": init_name(request.instance), "key": INIT },
        "instances": [server],
        "backups": backups(request),
    });
    if let Some((_, image)) = IMAGES.iter().find(|(major, _)| *major == request.version) {
        spec["image"] = json!(image);
    }
    if request.pgbouncer {
        let mut pooler = json!({ "image": PGBOUNCER_IMAGE, "replicas": POOLERS });
        request.placement.place_by_affinity(&mut pooler);
        spec["proxy"] = json!({ "pgBouncer": pooler });
    }
    object(&PERCONA, &name(request.instance), &spec)
}

/// Backups on a separate disk: a full one every week, an incremental one every day. Without a retention they would fill
/// the disk, and the database would stop.
fn backups(request: &PostgresRequest<'_>) -> Value {
    let mut pgbackrest = json!({
        "image": PGBACKREST_IMAGE,
        "global": { "repo1-retention-full": "2" },
        "repos": [{
            "name": "repo1",
            "schedules": { "full": "0 1 * * 0", "incremental": "0 1 * * 1-6" },
            "volume": { "volumeClaimSpec": claim(request.storage, DISK) },
        }],
    });
    let mut pod = json!({});
    request.placement.place_by_affinity(&mut pod);
    if pod != json!({}) {
        for pods in ["jobs", "repoHost"] {
            pgbackrest[pods] = pod.clone();
        }
    }
    json!({ "pgbackrest": pgbackrest })
}

/// The initial statements, which Percona's operator runs as superuser, once, when the database exists. They are
/// idempotent; an error stops them, because otherwise it would first show as a failure of GitLab.
pub(crate) fn init(instance: &str) -> Value {
    let extensions = EXTENSIONS.map(|extension| format!("CREATE EXTENSION IF NOT EXISTS {extension};\n"));
    let statements = format!(
        "\\set ON_ERROR_STOP on\n\\connect {DATABASE}\n{}",
        extensions.concat()
    );
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": init_name(instance) },
        "data": { INIT: statements },
    })
}

/// The major version of an existing cluster.
pub(crate) fn version(cluster: Option<&DynamicObject>) -> Option<u32> {
    let version = cluster?.data.pointer("/spec/postgresVersion")?.as_u64()?;
    u32::try_from(version).ok()
}

/// Whether the cluster can be used.
pub fn readiness(cluster: &DynamicObject) -> Readiness {
    let name = cluster.name_any();
    let count = |path| {
        cluster
            .data
            .pointer(path)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    match text(cluster, "/status/state") {
        _ if !observed(cluster) => Readiness::NotYet(format!(
            "PerconaPGCluster {name}: its operator has not seen the last change yet"
        )),
        Some("ready") => Readiness::Ready,
        Some(state) => Readiness::NotYet(format!(
            "PerconaPGCluster {name} is {state}: {} of {} servers are ready",
            count("/status/postgres/ready"),
            count("/status/postgres/size"),
        )),
        None => Readiness::NotYet(format!(
            "PerconaPGCluster {name} has no status yet: does its operator run?"
        )),
    }
}

/// The login, from the Secret that Percona's operator created.
pub fn psql(secret: &Secret, pgbouncer: bool) -> Result<Psql, Unusable> {
    let mut keys = Keys::of(secret);
    let server = keys.address("host", "port");
    let (address, behind_pooler) = if pgbouncer {
        (keys.address("pgbouncer-host", "pgbouncer-port"), Some(server))
    } else {
        (server, None)
    };
    let psql = Psql {
        address,
        behind_pooler,
        database: keys.text("dbname"),
        username: keys.text("user"),
        password: keys.sealed("password"),
    };
    keys.finish(psql)
}

#[cfg(test)]
mod tests {
    use insta::assert_yaml_snapshot;

    use super::*;
    use crate::backends::request::tests::live;
    use crate::backends::request::tests::{fullest, requests, spec};
    use crate::login::{Address, SecretKey};
    use crate::secret_keys::tests::secret;

    #[test]
    fn the_smallest() {
        let spec = spec(json!({}));
        assert_yaml_snapshot!(cluster(&requests(&spec).postgres(17)));
    }

    #[test]
    fn the_fullest() {
        assert_yaml_snapshot!(cluster(&requests(&fullest()).postgres(17)));
    }

    #[test]
    fn the_first_statements() {
        assert_yaml_snapshot!(init("shop"));
    }

    #[test]
    fn before_version_15_everybody_may_write_into_public() {
        let spec = spec(json!({}));
        let granted = |version| {
            let cluster = cluster(&requests(&spec).postgres(version));
            cluster.pointer("/spec/users/0/grantPublicSchemaAccess").cloned()
        };
        assert_eq!((granted(14), granted(15)), (None, Some(json!(true))));
    }

    #[test]
    fn a_cluster_is_ready_when_it_says_so_about_its_current_spec() {
        let status = |generation: i64, status: Value| {
            readiness(&live(
                json!({ "metadata": { "name": "shop-pg", "generation": generation }, "status": status }),
            ))
        };
        assert_eq!(status(1, json!({ "state": "ready" })), Readiness::Ready);
        assert_eq!(
            status(2, json!({ "state": "ready", "observedGeneration": 2 })),
            Readiness::Ready
        );
        let not_yet = |readiness| match readiness {
            Readiness::NotYet(why) => why,
            Readiness::Ready => panic!("ready"),
        };
        let stale = not_yet(status(2, json!({ "state": "ready", "observedGeneration": 1 })));
        assert_eq!(
            stale,
            "PerconaPGCluster shop-pg: its operator has not seen the last change yet"
        );
        let busy = not_yet(status(
            1,
            json!({ "state": "initializing", "postgres": { "ready": 1, "size": 3 } }),
        ));
        assert_eq!(
            busy,
            "PerconaPGCluster shop-pg is initializing: 1 of 3 servers are ready"
        );
        let silent = not_yet(readiness(&live(json!({ "metadata": { "name": "shop-pg" } }))));
        assert_eq!(
            silent,
            "PerconaPGCluster shop-pg has no status yet: does its operator run?"
        );
    }

    fn made(others: &[(&str, &str)]) -> Secret {
        let mut fields = vec![
            ("host", "shop-pg-primary.gl.svc"),
            ("port", "5432"),
            ("dbname", DATABASE),
            ("user", USERNAME),
            ("password", "hidden"),
        ];
        fields.extend(others);
        secret(&secret_name("shop"), &fields)
    }

    #[test]
    fn without_a_pooler_everything_goes_to_the_server() {
        let primary = Address {
            host: "shop-pg-primary.gl.svc".into(),
            port: 5432,
        };
        let expected = Psql {
            address: primary,
            behind_pooler: None,
            database: "gitlabhq_production".into(),
            username: "gitlab".into(),
            password: SecretKey {
                secret: "shop-pg-pguser-gitlab".into(),
                key: "password".into(),
            },
        };
        assert_eq!(psql(&made(&[]), false).unwrap(), expected);
    }

    #[test]
    fn with_a_pooler_the_server_is_still_known() {
        let pooler = [
            ("pgbouncer-host", "shop-pg-pgbouncer.gl.svc"),
            ("pgbouncer-port", "5432"),
        ];
        let psql = psql(&made(&pooler), true).unwrap();
        assert_eq!(psql.address.host, "shop-pg-pgbouncer.gl.svc");
        assert_eq!(psql.behind_pooler.unwrap().host, "shop-pg-primary.gl.svc");
    }

    #[test]
    fn a_pooler_that_is_not_there_yet_is_missed() {
        let error = psql(&made(&[]), true).unwrap_err().to_string();
        assert_eq!(
            error,
            "Secret shop-pg-pguser-gitlab: it lacks pgbouncer-host, pgbouncer-port"
        );
    }
}
