//! A database of one's own, with role names of one's own.

use std::sync::Arc;

use secrecy::SecretString;
use stanchion_postgres::{Session, Target, Timeouts};
use stanchion_roles::apply::{self, apply};
use stanchion_roles::diff::{self, diff};
use stanchion_roles::expand::{Desired, expand};
use stanchion_roles::inspect::{Needs, inspect};
use stanchion_roles::manifest::{Strictness, load};
use stanchion_roles::plan::{Mode, Plan};
use stanchion_roles::render;
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::unique;

/// Roles belong to the whole server, so `P_` in SQL and manifests stands for a prefix that no other test has.
pub(crate) struct Lab {
    pub(crate) database: Database<'static>,
    prefix: String,
}

impl Lab {
    pub(crate) async fn new(version: Version) -> Self {
        Self {
            database: Database::of(version).await,
            prefix: format!("{}_", unique::name("p")),
        }
    }

    pub(crate) fn text(&self, text: &str) -> String {
        text.replace("P_", &self.prefix)
            .replace("DATABASE_NAME", self.database.name())
    }

    /// The other way round, for comparing.
    pub(crate) fn generic(&self, text: &str) -> String {
        text.replace(&self.prefix, "P_")
            .replace(self.database.name(), "DATABASE_NAME")
    }

    pub(crate) async fn sql(&self, sql: &str) {
        self.database.execute(&self.text(sql)).await;
    }

    pub(crate) async fn value(&self, sql: &str) -> String {
        self.generic(&self.database.scalar(&self.text(sql)).await.unwrap_or_default())
    }

    pub(crate) async fn session(&self) -> Session {
        self.session_at(&self.database.url()).await
    }

    pub(crate) async fn session_at(&self, url: &str) -> Session {
        let target = Target::parse(&SecretString::from(url)).unwrap();
        Session::connect(&target, &Timeouts::default(), Arc::new(()))
            .await
            .unwrap()
    }

    pub(crate) fn desired(&self, manifest: &str) -> Desired {
        let loaded = load(&self.text(manifest), Strictness::Strict).unwrap_or_else(|error| panic!("{error}"));
        expand(&loaded.value)
    }

    pub(crate) async fn plan(&self, manifest: &str, mode: Mode) -> Plan {
        let desired = self.desired(manifest);
        let facts = inspect(&mut self.session().await, &Needs::of(&desired))
            .await
            .unwrap();
        diff(
            &desired,
            &facts,
            &diff::Options {
                mode,
                ..diff::Options::default()
            },
        )
        .unwrap()
    }

    /// The plan as SQL.
    pub(crate) async fn script(&self, manifest: &str) -> String {
        self.generic(&render::script(&self.plan(manifest, Mode::Authoritative).await))
    }

    pub(crate) async fn apply_as(&self, manifest: &str, mode: Mode) -> Result<Plan, apply::Error> {
        let options = apply::Options {
            diff: diff::Options {
                mode,
                ..diff::Options::default()
            },
            ..apply::Options::default()
        };
        apply(&mut self.session().await, &self.desired(manifest), &options).await
    }

    /// Applies, and insists that nothing is left to do.
    pub(crate) async fn converge(&self, manifest: &str) -> Plan {
        let plan = self
            .apply_as(manifest, Mode::Authoritative)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            self.script(manifest).await,
            "",
            "after an apply the diff is not empty"
        );
        plan
    }
}

/// Runs a test on every version.
#[macro_export]
macro_rules! on_every_version {
    ($(async fn $name:ident($lab:ident) $body:block)*) => {$(
        #[tokio::test]
        async fn $name() {
            for version in stanchion_testkit::postgres::versions() {
                let $lab = $crate::support::Lab::new(version).await;
                $body
            }
        }
    )*};
}
