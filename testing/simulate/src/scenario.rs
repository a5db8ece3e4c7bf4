//! What a kind has to bring along to be simulated.

use std::fmt;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use rand::rngs::StdRng;
use serde_json::Value;
use stanchion_kernel::Scope;
use stanchion_kernel::driver::Operator;
use stanchion_postgres::Dialer;

use crate::network::sql::{Hub, nobody};
use crate::network::{Network, Witness};
use crate::properties::Violation;

/// Nothing is written for so long: every retry has come round once.
pub const REST: Duration = Duration::from_mins(8);

/// The namespace in which everything happens.
pub const NAMESPACE: &str = "simulated";

/// Text that no secret value lacks. Where it shows up outside a Secret, a secret has got out.
pub const CANARY: &str = "c4n4ry";

/// A kind, as far as its objects have to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// `group/version`, or `v1`.
    pub api_version: &'static str,
    /// Such as `ConfigMap`.
    pub kind: &'static str,
    /// Such as `configmaps`.
    pub plural: &'static str,
}

impl Kind {
    /// As kube knows it.
    pub fn resource(&self) -> ApiResource {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", self.api_version));
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, self.kind), self.plural)
    }
}

/// What a user, or a tool of theirs, does.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Applies an object: it is then as it is here, or refused by its schema.
    Apply(Kind, Value),
    /// Deletes an object.
    Delete(Kind, String),
    /// Changes an object by hand, where there is one.
    Merge(Kind, String, Value),
    /// Something happens outside the cluster.
    Outside(Value),
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(kind, object) => write!(f, "apply {} {object}", kind.kind),
            Self::Delete(kind, name) => write!(f, "delete {} {name}", kind.kind),
            Self::Merge(kind, name, patch) => write!(f, "patch {} {name} {patch}", kind.kind),
            Self::Outside(what) => write!(f, "outside: {what}"),
        }
    }
}

/// Where a replica is.
pub struct Seat {
    /// The network that it is on. Without one, it is on the network of the machine.
    pub network: Option<Network>,
    /// Its number.
    pub replica: usize,
    /// Sees what it does outside Kubernetes.
    pub witness: Witness,
}

impl Seat {
    /// Refuses its connections, where nothing answers.
    pub fn refusing(&self) -> Dialer {
        let network = self.network.as_ref();
        network.map_or_else(Dialer::default, |_| nobody())
    }

    /// Opens its connections to PostgreSQL and S3.
    pub fn dialer(&self, hub: &Hub) -> Dialer {
        let network = self.network.as_ref();
        network.map_or_else(Dialer::default, |network| network.dialer(self.replica, hub))
    }
}

/// A controller, the objects that users make for it, and the world that it works on.
pub trait Scenario: Send + Sync + 'static {
    /// What the command line calls it.
    const NAME: &'static str;
    /// How many schedules are run unless somebody asks for another number.
    const SCHEDULES: u64 = 100;
    /// Whether some of its runs have several replicas.
    const REPLICATED: bool = true;
    /// How long simulated pods take to become ready; `None` where there are none.
    const PODS: Option<Duration> = None;
    /// Without a write for so long, an undisturbed object has converged.
    const FUZZ_REST: Duration = Duration::from_mins(2);
    /// Whether its controllers talk to PostgreSQL.
    const SQL: bool = false;
    /// The conditions that are not true of an object while the world is lost.
    const CLAIMS: &'static [&'static str] = &[];
    /// The kinds that are reconciled.
    const PRIMARY: &'static [Kind];
    /// The other kinds that belong to the end state.
    const OTHERS: &'static [Kind];

    /// The definitions that must be served.
    fn definitions() -> Vec<CustomResourceDefinition>;

    /// What users do. The last thing done to each object must leave it so that its end does not depend on what the
    /// operator saw of the way there.
    fn operations(random: &mut StdRng) -> Vec<(Duration, Operation)>;

    /// A new world.
    fn new() -> Self;

    /// Objects that are there before the operator is.
    fn prepare(&self, client: &Client) -> impl Future<Output = ()> {
        let _ = client;
        async {}
    }

    /// What is simulated outside the cluster is reached over the network of the machine from now on.
    fn leave_simulation(&self) -> impl Future<Output = ()> {
        async {}
    }

    /// Adds the controllers to a replica's operator. What they do outside Kubernetes is shown to the witness.
    fn add(&self, operator: &mut Operator, scope: &Scope, seat: Seat);

    /// Carries out [`Operation::Outside`].
    fn outside(&self, what: &Value) {
        let _ = what;
    }

    /// Everything outside is well again.
    fn heal(&self) {}

    /// For how long no object may claim [`Scenario::CLAIMS`] any more: the world was lost, and the time in which
    /// everybody must have noticed it is over.
    fn lost_for(&self) -> Option<Duration> {
        None
    }

    /// What does not hold about time, in a run of its own in which nothing else goes wrong.
    fn prompt(seed: u64) -> Vec<Violation> {
        let _ = seed;
        Vec::new()
    }

    /// What is outside the cluster now.
    fn world(&self) -> Value;

    /// What has happened that must never happen.
    fn faults(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is outside the cluster although everything was deleted.
    fn left(&self) -> Vec<String>;

    /// Whether an object of the operator's is meant to outlive what it was made for.
    fn is_kept(kind: &str, name: &str) -> bool {
        let _ = (kind, name);
        false
    }

    /// Takes out of an end state (`{"objects": {kind: {name: object}}, "world": …}`) what may depend on the way to it.
    fn comparable(end: &mut Value) {
        let _ = end;
    }
}
