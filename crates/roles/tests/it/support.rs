//! A database and role names for one test.

use std::ffi::OsString;
use std::sync::Arc;

use secrecy::SecretString;
use stanchion_postgres::{ConnectionConfig, Session, Timeouts};
use stanchion_roles::apply::{self, apply};
use stanchion_roles::diff::{self, diff};
use stanchion_roles::expand::{Desired, expand};
use stanchion_roles::inspect::{Needs, inspect};
use stanchion_roles::manifest::{Strictness, load};
use stanchion_roles::plan::{Mode, Plan};
use stanchion_roles::render;
use stanchion_roles_cli::{Cluster, Console, ReconcileArgs, run_as_pgroles};
use stanchion_testkit::postgres::{Database, Version};
use stanchion_testkit::unique;

/// Roles belong to the whole server, so `P_` in SQL and manifests stands for a prefix that no other test uses.
pub(crate) struct Lab {
    pub(crate) database: Database<'static>,
    prefix: String,
    folder: tempfile::TempDir,
}

impl Lab {
    pub(crate) async fn new(version: Version) -> Self {
        Self {
            database: Database::of(version).await,
            prefix: format!("{}_", unique::name("p")),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn text(&self, text: &str) -> String {
        text.replace("P_", &self.prefix)
            .replace("DATABASE_NAME", self.database.name())
    }

    /// Replaces the prefix by `P_` again, for comparisons.
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
        let target = ConnectionConfig::parse(&SecretString::from(url)).unwrap();
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
        let mut session = self.session().await;
        let facts = inspect(&mut session, &Needs::of(&desired)).await.unwrap();
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

    /// Applies, and asserts that the diff is empty afterwards.
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

/// The result of a run of the command.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Asserts the exit code.
    pub(crate) fn exits(self, code: u8) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    pub(crate) fn says(self, text: &str) -> Self {
        assert!(
            self.out.contains(text) || self.err.contains(text),
            "no {text:?} in {self:#?}"
        );
        self
    }

    pub(crate) fn hides(self, text: &str) -> Self {
        assert!(
            !self.out.contains(text) && !self.err.contains(text),
            "{text:?} is in {self:#?}"
        );
        self
    }
}

/// A cluster that reports its request.
struct Operator;

impl Cluster for Operator {
    async fn reconcile(&self, request: &ReconcileArgs) -> Result<String, String> {
        let ReconcileArgs {
            resource,
            namespace,
            wait,
            timeout,
        } = request;
        match resource.0.as_str() {
            "broken" => Err("ApplyFailed: permission denied".to_owned()),
            name => Ok(format!("{namespace}/{name} wait={wait} {timeout:?}")),
        }
    }
}

/// Runs the command as `pgroles`, with these variables in its environment.
pub(crate) async fn pgroles(args: &[&str], env: &[(&str, &str)]) -> Run {
    let (mut out, mut err) = (vec![], vec![]);
    let env = |name: &str| {
        env.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).to_owned())
    };
    let mut console = Console::new(&mut out, &mut err, &env);
    let line = ["pgroles"].iter().chain(args).map(OsString::from);
    let code = run_as_pgroles(line, &mut console, &Operator).await;
    Run {
        code,
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}

impl Lab {
    /// Writes a file of the test.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, self.text(text)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Runs a command on a manifest and this database.
    pub(crate) async fn run(&self, command: &str, manifest: &str, args: &[&str]) -> Run {
        self.run_as(&self.database.url(), command, manifest, args, &[])
            .await
    }

    pub(crate) async fn run_as(
        &self,
        url: &str,
        command: &str,
        manifest: &str,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Run {
        let file = self.file(&format!("{}.yaml", unique::name("m")), manifest);
        let all = [&[command, "--file", &file, "--database-url", url], args].concat();
        let mut run = pgroles(&all, env).await;
        run.out = self.generic(&run.out);
        run.err = self.generic(&run.err);
        run
    }

    /// Runs a command on a bundle.
    pub(crate) async fn run_bundle(&self, command: &str, files: &[(&str, &str)], args: &[&str]) -> Run {
        for (name, text) in files {
            self.file(name, text);
        }
        let bundle = self.folder.path().join("bundle.yaml");
        let url = self.database.url();
        let all = [
            &[
                command,
                "--bundle",
                bundle.to_str().unwrap(),
                "--database-url",
                &url,
            ],
            args,
        ]
        .concat();
        let mut run = pgroles(&all, &[]).await;
        run.out = self.generic(&run.out);
        run.err = self.generic(&run.err);
        run
    }

    /// Applies and asserts that it converged.
    pub(crate) async fn apply(&self, manifest: &str) -> Run {
        let run = self.run("apply", manifest, &[]).await.exits(0);
        self.run("diff", manifest, &[])
            .await
            .exits(0)
            .says("No changes needed");
        run
    }
}
