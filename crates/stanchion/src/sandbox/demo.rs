//! The demo: starts everything, shows it, and stops it in reverse order.

use std::pin::pin;
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};
use stanchion_fleet::cluster::Cluster;
use stanchion_ui::Server;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::api::ApiServer;
use super::error::SandboxError;
use super::examples::{self, Example, Logins};
use super::home::Home;
use super::operator::{self, Operator};
use super::scene::{Note, Scene, Thing};
use super::servers::Servers;
use super::view::{View, say};
use super::{Arguments, manifests};

/// How often the objects are read: often enough for a smooth display.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How long a signal can take until this process has handled it.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts the page first, so that it shows how everything starts. `--once` starts no page, because nobody looks at it.
pub(super) async fn page(arguments: &Arguments, api: &ApiServer) -> Result<Option<Server>, SandboxError> {
    let client = api.client();
    // First, so that the page finds every kind.
    manifests::define(&client, &manifests::definitions()?).await?;
    if arguments.once {
        return Ok(None);
    }
    let cluster = Cluster {
        client,
        url: api.url().to_owned(),
        namespace: None,
    };
    Ok(Some(Server::start(cluster, 0).await?))
}

/// Starts everything, shows it, and takes it down.
pub(super) async fn run(
    arguments: &Arguments,
    home: &Home,
    api: &ApiServer,
    shutdown: CancellationToken,
) -> Result<(), SandboxError> {
    let servers = match Servers::start(home).await {
        Ok(servers) => servers,
        // Ctrl-C in a terminal also ends the programs that prepare the servers, sometimes before this process handles it.
        Err(error) => {
            return timeout(SIGNAL_TIMEOUT, shutdown.cancelled())
                .await
                .map_err(|_| error);
        }
    };
    say(&servers.lines())?;
    let shown = Box::pin(operate(arguments, home, api, &servers, &shutdown)).await;
    servers.stop().await;
    shown
}

/// Starts the operator, and stops it before its servers.
async fn operate(
    arguments: &Arguments,
    home: &Home,
    api: &ApiServer,
    servers: &Servers,
    shutdown: &CancellationToken,
) -> Result<(), SandboxError> {
    let client = api.client();
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
    // They end when they are dropped.
    let _others = stage.call_others(shutdown).await?;
    let shown = tokio::select! {
        ended = operator.ended() => Err(ended),
        shown = Box::pin(show(arguments, home, api, servers, &stage)) => shown,
        () = shutdown.cancelled() => Ok(()),
    };
    operator.stop().await;
    shown
}

/// Applies the examples and shows their progress.
async fn show(
    arguments: &Arguments,
    home: &Home,
    api: &ApiServer,
    servers: &Servers,
    stage: &Stage,
) -> Result<(), SandboxError> {
    let started = Instant::now();
    let mut view = View::new();
    let mut before = Scene::default();
    let (mut filling, mut is_filled) = (pin!(stage.fill(servers)), false);
    loop {
        // While not everything is applied, the list of objects is incomplete.
        let is_complete = is_filled;
        let now = stage.look().await?;
        view.show(&before, &now, started.elapsed())?;
        before = now;
        if is_complete && before.is_ready() {
            break;
        }
        if arguments.once && started.elapsed() > Duration::from_secs(arguments.timeout) {
            say(&[stanchion_local::error::tail(&home.log())])?;
            return Err(SandboxError::NotReady {
                seconds: arguments.timeout,
                reasons: before.reasons(),
            });
        }
        tokio::select! {
            filled = &mut filling, if !is_filled => {
                filled?;
                is_filled = true;
            }
            () = sleep(LOOK_AGAIN) => {}
        }
    }
    say(&[
        String::new(),
        format!("All ready after {:.1} s.", started.elapsed().as_secs_f32()),
    ])?;
    let services = home.private("services");
    let programs = servers.database.programs();
    let logins = Logins::prepare(&stage.client, &stage.examples, programs, services).await?;
    say(&stage.guide(api, &logins).await?)?;
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

/// The cluster, and the examples on it.
struct Stage {
    client: Client,
    examples: Vec<&'static Example>,
}

impl Stage {
    /// Starts the simulated operators that the examples need.
    async fn call_others(&self, stop: &CancellationToken) -> Result<Vec<JoinSet<()>>, SandboxError> {
        let mut playing = Vec::new();
        for others in self.examples.iter().filter_map(|example| example.others.as_ref()) {
            for stream in others.definitions {
                manifests::define(&self.client, &manifests::documents(stream)?).await?;
            }
            playing.push((others.play)(self.client.clone(), stop));
        }
        Ok(playing)
    }

    /// Applies what differs from run to run, and each example on its first run: in a folder that is kept, the examples
    /// belong to the user.
    async fn fill(&self, servers: &Servers) -> Result<(), SandboxError> {
        for example in &self.examples {
            example.make_database(&servers.database).await?;
            let mut objects = (example.prerequisites)(servers);
            if !manifests::exists(&self.client, &example.mark()).await? {
                objects.extend(example.objects()?);
                objects.push(example.mark());
            }
            for object in &objects {
                manifests::apply(&self.client, object).await?;
            }
        }
        Ok(())
    }

    /// Reads all objects and events.
    async fn look(&self) -> Result<Scene, SandboxError> {
        let all = ListParams::default();
        let (mut things, mut words) = (Vec::new(), Vec::new());
        for kind in self.examples.iter().flat_map(|example| example.kinds) {
            let resource = (kind.resource)();
            words.push(resource.kind.clone());
            let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            for object in objects.list(&all).await?.items {
                let object = serde_json::to_value(&object)
                    .map_err(|error| SandboxError::Manifest(error.to_string()))?;
                things.push(Thing::of(kind, &resource.kind, &object));
            }
        }
        let events: Api<Event> = Api::all(self.client.clone());
        let notes = events.list(&all).await?.items;
        let notes = notes.iter().map(Note::of).filter(|note| note.concerns(&words));
        Ok(Scene::new(things, notes.collect()))
    }

    /// The hints for the user.
    async fn guide(&self, api: &ApiServer, logins: &Logins) -> Result<Vec<String>, SandboxError> {
        let mut lines = vec![
            "To try in another terminal while the sandbox runs:".to_owned(),
            String::new(),
            format!("  {}", api.export()),
        ];
        for example in &self.examples {
            lines.extend([String::new(), example.title.to_owned()]);
            for fact in example.facts {
                lines.push(format!("  {}: {}", fact.what, fact.read(&self.client).await?));
            }
            for hint in (example.guide)(logins) {
                lines.extend([format!("  # {}", hint.why), format!("  {}", hint.line)]);
            }
        }
        lines.push(String::new());
        if !examples::in_path("kubectl") {
            lines.push("kubectl is not in PATH: https://kubernetes.io/docs/tasks/tools/\n".to_owned());
        }
        Ok(lines)
    }
}
