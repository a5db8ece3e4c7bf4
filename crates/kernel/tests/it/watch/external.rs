//! Third-party kinds: their CRDs appear after the operator has started, change their version, and disappear, without a
//! restart.

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use stanchion_kernel::apply::{Intent, ObjectChange, Takeover, Written, decide};
use stanchion_kernel::condition::{Conditions, Truth};
use stanchion_kernel::context::Parent;
use stanchion_kernel::events::TransitionEvent;
use stanchion_kernel::external::{ExternalKind, ServedKind};
use stanchion_kernel::rbac;
use stanchion_kernel::watch::Watch;
use stanchion_kernel::{Done, Inputs, NoCleanup, Outcome, Problem, Reader, Reconciler, Report, Writer};
use stanchion_testkit::faults::{Call, Fault, Rule};

use crate::test_env::{Running, TestEnv, Widget, WidgetSpec, WidgetStatus, settings, writes_of};

static GIZMO: ExternalKind = ExternalKind {
    group: "foreign.stanchion.dev",
    kind: "Gizmo",
    plural: "gizmos",
    versions: &["v2", "v1"],
};
const KEPT: &str = "kept";

/// Reports for each widget the version and the content of its gizmo, and creates one that outlives it.
struct Follower;

struct Seen {
    parent: Parent,
    kind: ServedKind,
    said: Option<String>,
    kept: Option<DynamicObject>,
}

impl Reconciler for Follower {
    type Object = Widget;
    type Target = String;
    type Observed = Seen;
    type Plan = Option<ObjectChange>;
    type Applied = Written;
    type Cleanup = NoCleanup<Self>;

    const NAME: &'static str = "follower";
    const CONDITIONS: &'static [&'static str] = &["Ready"];
    const TRANSITION_EVENTS: &'static [TransitionEvent] = &[];

    fn watches() -> Vec<Watch> {
        Vec::new()
    }

    fn external_kinds() -> &'static [&'static ExternalKind] {
        static ALL: [&ExternalKind; 1] = [&GIZMO];
        &ALL
    }

    fn rules() -> Vec<rbac::Rule> {
        Vec::new()
    }

    fn validate(object: &Widget) -> Result<String, Problem> {
        Ok(object.name_any())
    }

    async fn observe(&self, read: &Reader, name: &String) -> Result<Seen, Problem> {
        let kind = read.served(&GIZMO).await?;
        let kind = kind.ok_or_else(|| Problem::dependency("NoGizmos", GIZMO.definition()))?;
        let found = read.get_external(&kind.resource, name).await?;
        let said = found.and_then(|found| Some(found.data.pointer("/spec/says")?.as_str()?.to_owned()));
        let kept = read.get_external(&kind.resource, KEPT).await?;
        let parent = read.parent().clone();
        Ok(Seen {
            parent,
            kind,
            said,
            kept,
        })
    }

    fn plan(_: &String, seen: &Seen, _: &mut Inputs<'_>) -> Result<Option<ObjectChange>, Problem> {
        let object = json!({
            "apiVersion": seen.kind.resource.api_version, "kind": "Gizmo",
            "metadata": { "name": KEPT }, "spec": { "says": "still here" },
        });
        let intent = Intent::to_keep(&object, &seen.parent)?.served_as(&seen.kind.resource);
        let intent = decide(intent, seen.kept.as_ref(), &seen.parent, Takeover::Adopt)?;
        Ok(intent.map(ObjectChange::Apply))
    }

    async fn apply(
        &self,
        write: &Writer,
        _: &String,
        _: &Seen,
        plan: Option<ObjectChange>,
        written: &mut Written,
    ) -> Result<Done, Problem> {
        write.apply_all(plan, written).await?;
        Ok(Done::Complete)
    }

    fn report(object: &Widget, outcome: &Outcome<'_, Self>, now: Timestamp) -> Report<WidgetStatus> {
        let mut status = object.status.clone().unwrap_or_default();
        let mut conditions = Conditions::new(&status.conditions, object.metadata.generation, now);
        match (outcome.problem, outcome.observed) {
            (Some(problem), _) => conditions.set("Ready", Truth::False, problem.reason, &problem.message),
            (None, Some(seen)) => {
                let message = format!(
                    "{:?} {}",
                    seen.kind.versions,
                    seen.said.as_deref().unwrap_or("nothing")
                );
                conditions.set("Ready", Truth::True, "Followed", &message);
            }
            _ => {}
        }
        status.conditions = conditions.finish();
        Report::new(status)
    }
}

fn definition(versions: &[&str]) -> CustomResourceDefinition {
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": *name == versions[0],
            "schema": { "openAPIV3Schema": {
                "type": "object",
                "properties": { "spec": { "type": "object", "properties": { "says": { "type": "string" } } } },
            }},
        })
    };
    let versions: Vec<Value> = versions.iter().map(version).collect();
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": GIZMO.definition() },
        "spec": {
            "group": GIZMO.group, "scope": "Namespaced", "versions": versions,
            "names": { "plural": "gizmos", "singular": "gizmo", "kind": "Gizmo" },
        },
    }))
    .unwrap()
}

async fn gizmo(env: &TestEnv, version: &str, says: &str) {
    let api: Api<DynamicObject> =
        Api::namespaced_with(env.client.clone(), &env.namespace, &GIZMO.at(version));
    let object = json!({
        "apiVersion": format!("{}/{version}", GIZMO.group), "kind": "Gizmo",
        "metadata": { "name": "one" }, "spec": { "says": says },
    });
    let params = PatchParams::apply("somebody").force();
    api.patch("one", &params, &Patch::Apply(&object)).await.unwrap();
}

async fn says(env: &TestEnv, operator: &Running, words: &str) {
    env.until(operator, "one", |widget| {
        let conditions = &widget.status.as_ref().unwrap().conditions;
        conditions.iter().any(|condition| condition.message == words)
    })
    .await;
}

#[tokio::test]
async fn a_third_party_kind_may_appear_change_and_disappear() {
    let env = TestEnv::new("foreign").await;
    let operator = env.start(env.cluster.config().await, settings(), Follower);
    env.widget(
        "one",
        WidgetSpec {
            size: 1,
            ..WidgetSpec::default()
        },
    )
    .await;
    env.until(&operator, "one", |widget| widget.fails_with("NoGizmos"))
        .await;
    // An operator is ready although a CRD is missing that may never be installed.
    operator.readiness.wait().await;

    env.cluster.install_crds([definition(&["v3"])]).await;
    env.until(&operator, "one", |widget| widget.fails_with("KindNotServed"))
        .await;
    operator.readiness.wait().await;

    env.cluster.install_crds([definition(&["v1", "v3"])]).await;
    says(&env, &operator, r#"["v1"] nothing"#).await;
    gizmo(&env, "v1", "hello").await;
    says(&env, &operator, r#"["v1"] hello"#).await;

    // The CRD is read, and the requests for its versions fail: a later pass asks again, and does not use the old answer.
    let discovers = |call: &Call| call.target.group == GIZMO.group && call.target.resource.is_empty();
    operator.faults.script(Rule::when(discovers, Fault::refuse(500)));
    env.cluster.install_crds([definition(&["v1", "v2", "v3"])]).await;
    env.until(&operator, "one", |widget| !widget.is_ready()).await;
    operator.faults.relent();
    says(&env, &operator, r#"["v2", "v1"] hello"#).await;
    gizmo(&env, "v2", "again").await;
    says(&env, &operator, r#"["v2", "v1"] again"#).await;

    let kept: Api<DynamicObject> = Api::namespaced_with(env.client.clone(), &env.namespace, &GIZMO.at("v2"));
    let found = kept.get(KEPT).await.unwrap();
    assert_eq!(found.metadata.owner_references, None, "it outlives the widget");
    operator.idle().await;
    let writes = writes_of(&operator);
    env.respec("one", json!({ "size": 2 })).await;
    operator.idle().await;
    let more: Vec<String> = writes_of(&operator).split_off(writes.len());
    assert!(more.iter().all(|write| !write.contains("gizmos")), "{more:?}");

    let definitions: Api<CustomResourceDefinition> = Api::all(env.client.clone());
    definitions
        .delete(&GIZMO.definition(), &DeleteParams::default())
        .await
        .unwrap();
    env.until(&operator, "one", |widget| widget.fails_with("NoGizmos"))
        .await;
    env.cluster.install_crds([definition(&["v1", "v2", "v3"])]).await;
    says(&env, &operator, r#"["v2", "v1"] nothing"#).await;
}
