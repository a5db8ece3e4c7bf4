//! The demo from the first server to the last, and everything taken down again.

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::api::ApiServer;
use super::database::Database;
use super::error::SandboxError;
use super::examples::{self, Example, Logins};
use super::home::Home;
use super::operator::{self, Operator};
use super::scene::{Note, Scene, Thing};
use super::view::{View, say};
use super::{Arguments, manifests};

/// How long `--once` waits. An idle machine needs a few seconds; a busy one gets time.
const READY_WITHIN: Duration = Duration::from_mins(3);
/// How often the scene is looked at: often enough for the eye.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Starts everything, shows it, and takes it down.
pub(super) async fn run(
    arguments: &Arguments,
    home: &Home,
    api: &ApiServer,
    shutdown: CancellationToken,
) -> Result<(), SandboxError> {
    let database = match Database::start(home).await {
        Ok(database) => database,
        // Ctrl-C in a terminal also ends the programs that were just making it.
        Err(_) if shutdown.is_cancelled() => return Ok(()),
        Err(error) => return Err(error),
    };
    say(&[format!(
        "PostgreSQL   127.0.0.1:{} (version {})",
        database.port(),
        database.release()
    )])?;
    let shown = Box::pin(operate(arguments, home, api, &database, &shutdown)).await;
    database.stop().await;
    shown
}

/// Starts the operator, and ends it before the servers that it works on.
async fn operate(
    arguments: &Arguments,
    home: &Home,
    api: &ApiServer,
    database: &Database,
    shutdown: &CancellationToken,
) -> Result<(), SandboxError> {
    let client = api.client();
    manifests::define(&client).await?;
    for object in operator::installation(&arguments.controllers)? {
        manifests::apply(&client, &object).await?;
    }
    let mut operator = Operator::start(api, &arguments.controllers).await?;
    let names: Vec<&str> = arguments.controllers.rows().map(|row| row.name).collect();
    say(&[format!(
        "operator     controllers: {}; {}",
        names.join(", "),
        operator.metrics()
    )])?;
    let stage = Stage {
        client,
        examples: examples::of(&arguments.controllers),
    };
    let shown = tokio::select! {
        ended = operator.ended() => Err(ended),
        shown = Box::pin(show(arguments, home, api, database, &stage)) => shown,
        () = shutdown.cancelled() => Ok(()),
    };
    operator.stop().await;
    shown
}

/// Applies the examples and shows what becomes of them.
async fn show(
    arguments: &Arguments,
    home: &Home,
    api: &ApiServer,
    database: &Database,
    stage: &Stage,
) -> Result<(), SandboxError> {
    stage.fill(database).await?;
    let started = Instant::now();
    let mut view = View::new();
    let mut before = Scene::default();
    while !before.is_ready() {
        let now = stage.look().await?;
        view.show(&before, &now, started.elapsed())?;
        if arguments.once && started.elapsed() > READY_WITHIN {
            say(&[stanchion_local::error::tail(&home.log())])?;
            return Err(SandboxError::NotReady {
                seconds: READY_WITHIN.as_secs(),
                reasons: now.reasons(),
            });
        }
        before = now;
        sleep(LOOK_AGAIN).await;
    }
    say(&[
        String::new(),
        format!("All ready after {:.1} s.", started.elapsed().as_secs_f32()),
    ])?;
    let services = home.private("services");
    let logins = Logins::prepare(&stage.client, &stage.examples, database.programs(), services).await?;
    say(&stage.guide(api, &logins))?;
    if arguments.once {
        return Ok(());
    }
    say(&[format!(
        "The log is in {}. Ctrl-C ends everything.\n",
        home.log().display()
    )])?;
    let mut view = View::Lines;
    loop {
        sleep(LOOK_AGAIN).await;
        let now = stage.look().await?;
        view.show(&before, &now, started.elapsed())?;
        before = now;
    }
}

/// The cluster, and what is shown on it.
struct Stage {
    client: Client,
    examples: Vec<&'static Example>,
}

impl Stage {
    /// Applies what differs from run to run, and the examples on the first one: those of a folder that is kept are
    /// the user's.
    async fn fill(&self, database: &Database) -> Result<(), SandboxError> {
        for example in &self.examples {
            let mut objects = (example.ground)(database);
            if database.is_new() {
                objects.extend(example.objects()?);
            }
            for object in &objects {
                manifests::apply(&self.client, object).await?;
            }
        }
        Ok(())
    }

    /// Looks at all objects and events.
    async fn look(&self) -> Result<Scene, SandboxError> {
        let all = ListParams::default();
        let mut things = Vec::new();
        for kind in self.examples.iter().flat_map(|example| example.kinds) {
            let resource = (kind.resource)();
            let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            for object in objects.list(&all).await?.items {
                let object = serde_json::to_value(&object)
                    .map_err(|error| SandboxError::Manifest(error.to_string()))?;
                things.push(Thing::of(kind, &resource.kind, &object));
            }
        }
        let events: Api<Event> = Api::all(self.client.clone());
        let notes = events.list(&all).await?.items.iter().map(Note::of).collect();
        Ok(Scene::new(things, notes))
    }

    /// What to try while it runs.
    fn guide(&self, api: &ApiServer, logins: &Logins) -> Vec<String> {
        let mut lines = vec![
            "To try in another terminal while the sandbox runs:".to_owned(),
            String::new(),
            format!("  {}", api.export()),
        ];
        for hint in self.examples.iter().flat_map(|example| (example.guide)(logins)) {
            lines.extend([
                String::new(),
                format!("  # {}", hint.why),
                format!("  {}", hint.line),
            ]);
        }
        lines.push(String::new());
        if !examples::in_path("kubectl") {
            lines.push("kubectl is not in PATH: https://kubernetes.io/docs/tasks/tools/\n".to_owned());
        }
        lines
    }
}
