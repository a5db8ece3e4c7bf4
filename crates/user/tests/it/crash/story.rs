//! The scenarios of the crash tests, and their required end states.

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_api::user::FINALIZER;
use stanchion_postgres::Target;
use stanchion_testkit::crash::{Scenario, objects};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::postgres::versions;
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::running::Latest;
use stanchion_testkit::{unique, wait};

use crate::bed::{Bed, How, PATIENCE, quick, role_name};

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub(super) enum Story {
    /// Creates a role.
    Create,
    /// Creates a role with a generated password.
    Generate,
    /// Moves it to another database and adds privileges.
    Update,
    /// Changes its Secret.
    Password,
    /// Deletes a role that leaves a table behind.
    Delete,
    /// Creates a role and a database for it.
    Database,
    /// Deletes a role and its database.
    DeleteDatabase,
}

/// One run of a scenario, with its own namespace and two databases.
pub(super) struct Told {
    pub(super) bed: Bed,
    /// The proxy between the operator and the server.
    pub(super) proxy: Proxy,
    /// The administrator's connection through the proxy.
    admin: Target,
    role: String,
    other: String,
    operator: Latest,
}

impl Story {
    /// Each scenario uses another version and another kind of administrator, so that all are covered.
    async fn bed(self) -> Bed {
        let all = versions();
        let nth = |n: usize| all[n % all.len()];
        match self {
            Self::Create => Bed::new(nth(0)).await,
            Self::Generate | Self::Delete => Bed::plain(nth(1)).await,
            Self::Password => Bed::new(nth(2)).await,
            Self::Update | Self::Database => Bed::plain(nth(3)).await,
            Self::DeleteDatabase => Bed::plain(nth(0)).await,
        }
    }

    async fn state(self, told: &Told) -> Value {
        let Told { bed, role, other, .. } = told;
        let client = bed.client.clone();
        let mut users = objects::<PostgresUser>(client.clone(), &bed.namespace).await;
        if let Some(hero) = users.get_mut("hero") {
            assert_eq!(hero["metadata"]["finalizers"], json!([FINALIZER]));
            // These differ between runs.
            hero["status"]["roleOID"] = Value::Null;
            hero["status"]["roleSeal"] = Value::Null;
            hero["status"]["appliedSecretHash"] = Value::Null;
        }
        let secrets = objects::<Secret>(client, &bed.namespace).await;
        let names: Vec<&String> = secrets.as_object().unwrap().keys().collect();
        let server = bed.database.server();
        let attributes = format!(
            "SELECT concat_ws(' ', rolcanlogin, rolsuper, rolconnlimit, split_part(shobj_description(oid, 'pg_authid'), ' ', 5)) \
             FROM pg_roles WHERE rolname = '{role}'"
        );
        let inside = format!(
            "SELECT concat_ws(' ', (SELECT string_agg(nspacl::text, ',') FROM pg_namespace WHERE nspacl::text LIKE '%{role}%'), \
             (SELECT string_agg(defaclacl::text, ',' ORDER BY 1) FROM pg_default_acl WHERE defaclacl::text LIKE '%{role}%'), \
             (SELECT regexp_replace(tableowner, '^stanchion_kept_.*', 'its keeper') FROM pg_tables WHERE tablename = 'kept'))"
        );
        json!({
            "users": users,
            "secrets": names,
            "roles": bed.server_one(&format!("SELECT count(*) FROM pg_roles WHERE rolname LIKE '{role}%'")).await,
            "role": bed.server_one(&attributes).await,
            "here": [bed.words(role, bed.database.name()).await, bed.one(&inside).await],
            "there": [bed.words(role, other).await, server.scalar(other, &inside).await],
            "made": bed.server_one(&format!("SELECT regexp_replace(datdba::regrole::text, '^stanchion_kept_.*', 'its keeper') FROM pg_database WHERE datname = '{role}_db'")).await,
            "first": bed.logs_in(role, "first").await,
            "second": bed.logs_in(role, "second").await,
            "generated": self.generated(told).await,
        })
    }

    /// Whether the password that the application would read logs in.
    async fn generated(self, told: &Told) -> Option<bool> {
        let secret = told.bed.secrets().get_opt("hero-credentials").await.unwrap()?;
        let password = String::from_utf8(secret.data?.get("password")?.0.clone()).ok()?;
        Some(told.bed.logs_in(&told.role, &password).await)
    }
}

impl Scenario for Story {
    type Run = Told;

    /// Prepares the scenario with an operator that is then stopped.
    async fn set_up(&self) -> Told {
        let bed = self.bed().await;
        let (proxy, admin) = bed.proxy().await;
        let told = Told {
            bed,
            proxy,
            admin,
            role: role_name(),
            other: unique::name("other"),
            operator: Latest::new("user"),
        };
        let Told { bed, role, other, .. } = &told;
        let server = bed.database.server();
        server
            .execute(
                "postgres",
                &format!(
                    "CREATE DATABASE {other} OWNER {} STRATEGY file_copy",
                    bed.admin().user()
                ),
            )
            .await;
        bed.password("hero", "first").await;
        let generated = json!({ "passwordSecretRef": null, "password": { "generate": {} } });
        let given =
            json!({ "privileges": ["CONNECT", "TEMPORARY", "READ"], "role": { "connectionLimit": 9 } });
        let owning = json!({
            "database": format!("{role}_db"), "privileges": ["OWNER"],
            "createDatabase": { "enabled": true, "owner": true, "schemas": ["app"], "deletionPolicy": "Delete" },
        });
        let spec = match self {
            Self::Generate => generated,
            Self::Database | Self::DeleteDatabase => owning,
            Self::Create | Self::Update | Self::Password | Self::Delete => given,
        };
        bed.user("hero", role, spec).await;
        if matches!(self, Self::Create | Self::Generate | Self::Database) {
            return told;
        }
        let operator = bed.operator().await;
        bed.ready("hero").await;
        operator.kill().await;
        match self {
            Self::Create | Self::Generate | Self::Database => {}
            Self::DeleteDatabase => bed.delete("hero").await,
            Self::Update => {
                let spec = json!({ "database": other, "privileges": ["CONNECT", "WRITE"] });
                bed.user("hero", role, spec).await;
            }
            Self::Password => bed.password("hero", "second").await,
            Self::Delete => {
                let table =
                    format!("CREATE TABLE public.kept (n int); ALTER TABLE public.kept OWNER TO {role}");
                server.execute(other, &table).await;
                bed.delete("hero").await;
            }
        }
        told
    }

    async fn operate(&self, told: &Told, faults: Faults) {
        let how = How {
            admin: told.admin.clone(),
            faults,
            backoff: quick(),
            ..told.bed.how().await
        };
        let (operator, metrics) = told.bed.build(how);
        let _now = told.operator.runs(move || metrics.encode());
        operator.run().await;
    }

    async fn has_looked(&self, told: &Told) -> bool {
        told.operator.has_looked() || told.bed.users().get_opt("hero").await.unwrap().is_none()
    }

    /// Returns when the scenario has converged.
    async fn converge(&self, told: &Told) {
        let Told { bed, role, .. } = told;
        match self {
            Self::Create | Self::Generate | Self::Update | Self::Database => drop(bed.ready("hero").await),
            Self::Password => {
                wait::eventually(PATIENCE, "the new password", || bed.logs_in(role, "second")).await;
                bed.ready("hero").await;
            }
            Self::Delete | Self::DeleteDatabase => bed.gone("hero").await,
        }
    }

    /// The end state. The databases are dropped afterwards, because there are many runs.
    async fn end_state(&self, told: &Told) -> Value {
        let state = self.state(told).await;
        let made = format!("{}_db", told.role);
        for name in [told.bed.database.name(), &told.other, &made] {
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            told.bed.database.server().execute("postgres", &drop).await;
        }
        state
    }

    /// Masks the names that differ between runs.
    fn mask(&self, told: &Told, text: &str) -> String {
        let Told { bed, role, other, .. } = told;
        text.replace(&bed.namespace, "<namespace>")
            .replace(role, "<role>")
            .replace(bed.database.name(), "<here>")
            .replace(other, "<there>")
            .replace(bed.admin().user(), "<admin>")
            .replace(&told.proxy.address().to_string(), "<server>")
    }
}
