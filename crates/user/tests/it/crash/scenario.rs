//! The scenarios of the crash tests, and their required end states.

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_api::user::FINALIZER;
use stanchion_postgres::ConnectionConfig;
use stanchion_testenv::TestOperator;
use stanchion_testenv::crash::{CrashScenario, SqlCrashScenario};
use stanchion_testkit::faults::Faults;
use stanchion_testkit::postgres::versions;
use stanchion_testkit::proxy::Proxy;
use stanchion_testkit::{unique, wait};

use crate::test_env::{How, QUICK_BACKOFF, TestEnv, WAIT_TIMEOUT, role_name};

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub(super) enum UserScenario {
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
pub(super) struct CrashRun {
    env: TestEnv,
    /// The proxy between the operator and the server.
    proxy: Proxy,
    /// The administrator's connection through the proxy.
    admin: ConnectionConfig,
    role: String,
    other: String,
}

impl UserScenario {
    /// Each scenario uses another version and another kind of administrator, so that all are covered.
    async fn env(self) -> TestEnv {
        let all = versions();
        let nth = |n: usize| all[n % all.len()];
        match self {
            Self::Create => TestEnv::new(nth(0)).await,
            Self::Generate | Self::Delete => TestEnv::plain(nth(1)).await,
            Self::Password => TestEnv::new(nth(2)).await,
            Self::Update | Self::Database => TestEnv::plain(nth(3)).await,
            Self::DeleteDatabase => TestEnv::plain(nth(0)).await,
        }
    }

    async fn state(self, run: &CrashRun) -> Value {
        let CrashRun { env, role, other, .. } = run;
        let mut users = env.normalised::<PostgresUser>().await;
        if let Some(hero) = users.get_mut("hero") {
            assert_eq!(hero["metadata"]["finalizers"], json!([FINALIZER]));
            // These differ between runs.
            hero["status"]["roleOID"] = Value::Null;
            hero["status"]["roleSeal"] = Value::Null;
            hero["status"]["appliedSecretHash"] = Value::Null;
        }
        let secrets = env.normalised::<Secret>().await;
        let names: Vec<&String> = secrets.as_object().unwrap().keys().collect();
        let server = env.database.server();
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
            "roles": env.server_one(&format!("SELECT count(*) FROM pg_roles WHERE rolname LIKE '{role}%'")).await,
            "role": env.server_one(&attributes).await,
            "here": [env.words(role, env.database.name()).await, env.one(&inside).await],
            "there": [env.words(role, other).await, server.scalar(other, &inside).await],
            "made": env.server_one(&format!("SELECT regexp_replace(datdba::regrole::text, '^stanchion_kept_.*', 'its keeper') FROM pg_database WHERE datname = '{role}_db'")).await,
            "first": env.logs_in(role, "first").await,
            "second": env.logs_in(role, "second").await,
            "generated": self.generated(run).await,
        })
    }

    /// Whether the password that the application would read logs in.
    async fn generated(self, run: &CrashRun) -> Option<bool> {
        let secret = run.env.secrets().get_opt("hero-credentials").await.unwrap()?;
        let password = String::from_utf8(secret.data?.get("password")?.0.clone()).ok()?;
        Some(run.env.logs_in(&run.role, &password).await)
    }
}

impl CrashScenario for UserScenario {
    type Run = CrashRun;

    /// Prepares the scenario with an operator that is then stopped.
    async fn set_up(&self) -> CrashRun {
        let env = self.env().await;
        let (proxy, admin) = env.proxy().await;
        let run = CrashRun {
            env,
            proxy,
            admin,
            role: role_name(),
            other: unique::name("other"),
        };
        let CrashRun { env, role, other, .. } = &run;
        let server = env.database.server();
        server
            .execute(
                "postgres",
                &format!(
                    "CREATE DATABASE {other} OWNER {} STRATEGY file_copy",
                    env.admin().user()
                ),
            )
            .await;
        env.password("hero", "first").await;
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
        env.user("hero", role, spec).await;
        if matches!(self, Self::Create | Self::Generate | Self::Database) {
            return run;
        }
        let operator = env.operator().await;
        env.ready("hero").await;
        operator.kill().await;
        match self {
            Self::Create | Self::Generate | Self::Database => {}
            Self::DeleteDatabase => env.delete("hero").await,
            Self::Update => {
                let spec = json!({ "database": other, "privileges": ["CONNECT", "WRITE"] });
                env.user("hero", role, spec).await;
            }
            Self::Password => env.password("hero", "second").await,
            Self::Delete => {
                let table =
                    format!("CREATE TABLE public.kept (n int); ALTER TABLE public.kept OWNER TO {role}");
                server.execute(other, &table).await;
                env.delete("hero").await;
            }
        }
        run
    }

    async fn operator(&self, run: &CrashRun, faults: Faults) -> TestOperator {
        run.env.build(How {
            admin: run.admin.clone(),
            faults,
            backoff: QUICK_BACKOFF,
            ..run.env.how().await
        })
    }

    async fn is_gone(&self, run: &CrashRun) -> bool {
        run.env.is_absent::<PostgresUser>("hero").await
    }

    /// Returns when the scenario has converged.
    async fn converge(&self, run: &CrashRun) {
        let CrashRun { env, role, .. } = run;
        match self {
            Self::Create | Self::Generate | Self::Update | Self::Database => drop(env.ready("hero").await),
            Self::Password => {
                wait::eventually(WAIT_TIMEOUT, "the new password", || env.logs_in(role, "second")).await;
                env.ready("hero").await;
            }
            Self::Delete | Self::DeleteDatabase => env.gone("hero").await,
        }
    }

    /// The end state. The databases are dropped afterwards, because there are many runs.
    async fn end_state(&self, run: &CrashRun) -> Value {
        let state = self.state(run).await;
        let made = format!("{}_db", run.role);
        for name in [run.env.database.name(), &run.other, &made] {
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            run.env.database.server().execute("postgres", &drop).await;
        }
        state
    }

    /// Masks the names that differ between runs.
    fn mask(&self, run: &CrashRun, text: &str) -> String {
        let CrashRun { env, role, other, .. } = run;
        text.replace(&env.namespace, "<namespace>")
            .replace(role, "<role>")
            .replace(env.database.name(), "<here>")
            .replace(other, "<there>")
            .replace(env.admin().user(), "<admin>")
            .replace(&run.proxy.address().to_string(), "<server>")
    }
}

impl SqlCrashScenario for UserScenario {
    fn proxy(run: &CrashRun) -> &Proxy {
        &run.proxy
    }
}
