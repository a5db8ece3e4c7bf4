//! F24: who may change a database without approval, who may approve, and by which name they are known.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use stanchion_api::{PostgresPolicy, PostgresPolicyPlan};
use stanchion_kernel::admission::FailurePolicy;
use stanchion_testkit::cluster::Kind;
use stanchion_testkit::report;

use super::test_env::TestEnv;

const ADMISSION: &str = include_str!("../../../../deploy/approvals.yaml");

/// Somebody of this name, as the API server sees them.
async fn client_of(env: &TestEnv, user: &str) -> Client {
    let mut config = env.cluster.config().await;
    config.auth_info.impersonate = Some(user.to_owned());
    Client::try_from(config).unwrap()
}

async fn apply(client: &Client, namespace: Option<&str>, object: &Value) {
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let types = object.types.clone().unwrap();
    let (group, version) = types.api_version.split_once('/').unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let params = PatchParams::apply("test").force();
    api.patch(&object.name_any(), &params, &Patch::Apply(&object))
        .await
        .unwrap();
}

/// Lets somebody do this with our objects in the test's namespace.
async fn allow(env: &TestEnv, user: &str, rules: &Value) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": user }, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": user },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    });
    for object in [role, binding] {
        apply(&env.client, Some(&env.namespace), &object).await;
    }
}

fn everything(resources: &[&str], verbs: &[&str]) -> Value {
    json!([{ "apiGroups": ["pgroles.io"], "resources": resources, "verbs": verbs }])
}

const PLANS: &[&str] = &["postgrespolicyplans", "postgrespolicyplans/status"];
const POLICIES: &[&str] = &["postgrespolicies", "postgrespolicies/status"];

async fn annotate(client: &Client, env: &TestEnv, plan: &str, manager: &str) -> Result<(), String> {
    let plans: Api<PostgresPolicyPlan> = Api::namespaced(client.clone(), &env.namespace);
    let patch = json!({ "metadata": { "annotations": { "pgroles.io/approved": "true" } } });
    let params = PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    };
    let patched = plans.patch(plan, &params, &Patch::Merge(&patch)).await;
    patched.map(drop).map_err(|error| error.to_string())
}

/// Somebody who calls their client after another person is known by the name that the API server has authenticated.
#[tokio::test]
async fn a_decision_has_the_name_that_the_api_server_knows() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    let webhooks = stanchion_policy::plans::webhooks(&env.key);
    let _served = env.serve_webhooks(webhooks, FailurePolicy::Ignore).await;
    env.database_secret().await;
    allow(&env, "mallory", &everything(PLANS, &["get", "list", "patch"])).await;
    let mallory = client_of(&env, "mallory").await;
    let spec = json!({ "interval": "1s", "approval": "manual", "roles": [{ "name": env.role("app") }] });
    env.policy("asks", spec).await;
    let plan = env.plan_in("asks", "Pending").await.name_any();
    // A registration takes a moment until every API server asks.
    let said = env.wait();
    let plans: Api<PostgresPolicyPlan> = Api::namespaced(mallory.clone(), &env.namespace);
    let seen = said.eventually("the webhook is asked", async || {
        let claim = json!({ "metadata": { "annotations": { "pgroles.io/decided-by": "v1.x.y boss" } } });
        let dry = PatchParams {
            dry_run: true,
            ..PatchParams::default()
        };
        let answer = plans.patch(&plan, &dry, &Patch::Merge(&claim)).await.unwrap();
        (!answer.annotations().contains_key("pgroles.io/decided-by")).then_some(())
    });
    seen.await;
    annotate(&mallory, &env, &plan, "boss").await.unwrap();
    let applied = env.plan_in("asks", "Applied").await;
    let status = applied.status.unwrap();
    assert_eq!(status.decided_by.unwrap().username, "mallory");
    let approved = status
        .conditions
        .iter()
        .find(|it| it.type_ == "Approved")
        .unwrap();
    assert_eq!(approved.message, "by mallory");
}

/// Applies `deploy/approvals.yaml` for the test's namespace, with the test's own user as the operator.
async fn install_admission_policy(env: &TestEnv) {
    let reviews: Api<SelfSubjectReview> = Api::all(env.client.clone());
    let review = reviews
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
        .unwrap();
    let operator = review.status.unwrap().user_info.unwrap().username.unwrap();
    let text = ADMISSION
        .replace("system:serviceaccount:stanchion-system:stanchion", &operator)
        .replace("stanchion-appro", &format!("{}-appro", env.namespace));
    for document in text.split("\n---\n") {
        let mut object: Value = serde_saphyr::from_str(document).unwrap();
        if object["kind"] == "ValidatingAdmissionPolicyBinding" {
            let here = json!({ "kubernetes.io/metadata.name": env.namespace });
            object["spec"]["matchResources"] = json!({ "namespaceSelector": { "matchLabels": here } });
        }
        apply(&env.client, None, &object).await;
    }
}

/// Deleting a plan, while something keeps it, opens no other way to approve it. Returns the plan that takes its place.
async fn delete_and_approve(env: &TestEnv, author: &Client, plan: &str) -> String {
    let params = PatchParams::default();
    let kept = json!({ "metadata": { "finalizers": ["example.com/kept"] } });
    env.plans()
        .patch(plan, &params, &Patch::Merge(&kept))
        .await
        .unwrap();
    // A plan of the same second has the same name.
    let before = env.plans().get(plan).await.unwrap().uid();
    env.plans().delete(plan, &DeleteParams::default()).await.unwrap();
    let refused = annotate(author, env, plan, "author").await.unwrap_err();
    assert!(refused.contains("approve or reject plans"), "{refused}");
    // The change that lets it go is not a decision.
    let theirs: Api<PostgresPolicyPlan> = Api::namespaced(author.clone(), &env.namespace);
    let freed = json!({ "metadata": { "finalizers": null } });
    theirs.patch(plan, &params, &Patch::Merge(&freed)).await.unwrap();
    env.wait()
        .eventually("another plan waits", async || {
            let pending = env.plan_in("asks", "Pending").await;
            (pending.uid() != before).then(|| pending.name_any())
        })
        .await
}

/// Whether the policy could have this spec.
async fn try_spec(policies: &Api<PostgresPolicy>, spec: &Value) -> Result<(), String> {
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({ "spec": spec }));
    let answer = policies.patch("asks", &params, &patch).await;
    answer.map(drop).map_err(|error| error.to_string())
}

/// What the author of a policy may write without the verb `approve`.
async fn specs_are_admitted_or_refused(policies: &Api<PostgresPolicy>) {
    for (spec, allowed) in [
        (json!({ "approval": "auto" }), false),
        (json!({ "approval": null }), false),
        (json!({ "approval": null, "mode": "observe" }), true),
        (json!({ "interval": "2s" }), true),
        // A deletion waits for no approval, unless the policy only observes.
        (json!({ "deletionPolicy": "Revoke" }), false),
        (
            json!({ "approval": null, "mode": "observe", "deletionPolicy": "Revoke" }),
            true,
        ),
        (json!({ "deletionPolicy": "Retain" }), true),
    ] {
        let answer = try_spec(policies, &spec).await;
        assert_eq!(answer.is_ok(), allowed, "{spec}: {answer:?}");
        let error = answer.err();
        assert!(error.is_none_or(|error| error.contains("set spec.approval to manual")));
    }
}

/// The admission policy of `deploy/approvals.yaml`, on a real API server.
#[tokio::test]
async fn rbac_decides_who_approves() {
    let env = TestEnv::new().await;
    if env.cluster.kind() != Kind::Real {
        report::skipped(
            "approvals::rbac_decides_who_approves",
            "the sandbox's expressions have no authorizer",
        );
        return;
    }
    let _operator = env.operator().await;
    env.database_secret().await;
    install_admission_policy(&env).await;
    let write = &["get", "list", "watch", "create", "patch", "update"];
    let all = [POLICIES, PLANS].concat();
    allow(&env, "author", &everything(&all, write)).await;
    let approver = [
        everything(&["postgrespolicies"], &["approve"]),
        everything(PLANS, write),
    ];
    let approver: Vec<Value> = approver
        .iter()
        .flat_map(|rules| rules.as_array().unwrap().clone())
        .collect();
    allow(&env, "approver", &json!(approver)).await;
    let (author, approver) = (client_of(&env, "author").await, client_of(&env, "approver").await);
    let policies: Api<PostgresPolicy> = Api::namespaced(author.clone(), &env.namespace);
    let roles = json!([{ "name": env.role("app") }]);
    env.policy(
        "asks",
        json!({ "interval": "1s", "approval": "manual", "roles": roles }),
    )
    .await;
    let plan = env.plan_in("asks", "Pending").await.name_any();
    env.wait()
        .eventually("the admission policy is in force", async || {
            try_spec(&policies, &json!({ "approval": "auto" })).await.err()
        })
        .await;
    specs_are_admitted_or_refused(&policies).await;
    let applied = json!({ "status": { "applied_database_identity": "1/2" } });
    let params = PatchParams::default();
    let refused = policies
        .patch_status("asks", &params, &Patch::Merge(&applied))
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("write the status of a policy"), "{refused}");
    let refused = annotate(&author, &env, &plan, "author").await.unwrap_err();
    assert!(refused.contains("approve or reject plans"), "{refused}");
    let plan = delete_and_approve(&env, &author, &plan).await;
    let status = |name: &str| {
        let condition = json!({
            "type": "Approved", "status": "True", "reason": "Fine", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        json!({ "status": { "conditions": [condition], "decidedBy": { "username": name } } })
    };
    let decide = async |client: &Client, name: &str| {
        let plans: Api<PostgresPolicyPlan> = Api::namespaced(client.clone(), &env.namespace);
        let params = PatchParams::default();
        let answer = plans
            .patch_status(&plan, &params, &Patch::Merge(&status(name)))
            .await;
        answer.map(drop).map_err(|error| error.to_string())
    };
    assert!(
        decide(&author, "author")
            .await
            .unwrap_err()
            .contains("approve or reject plans")
    );
    assert!(
        decide(&approver, "boss")
            .await
            .unwrap_err()
            .contains("decidedBy.username")
    );
    decide(&approver, "approver").await.unwrap();
    let applied = env.plan_in("asks", "Applied").await;
    assert_eq!(applied.status.unwrap().decided_by.unwrap().username, "approver");
}

/// A plan that is being deleted, or that belonged to another policy of this name, waits for nobody's approval.
#[tokio::test]
async fn a_decision_about_a_plan_that_is_gone_does_not_count() {
    let env = TestEnv::new().await;
    let _operator = env.operator().await;
    env.database_secret().await;
    let role = env.role("app");
    let spec = json!({ "interval": "1s", "approval": "manual", "roles": [{ "name": role }] });
    env.policy("asks", spec).await;
    let gone = env.plan_in("asks", "Pending").await.name_any();
    let params = PatchParams::default();
    let kept = json!({ "metadata": { "finalizers": ["example.com/kept"], "annotations": { "pgroles.io/approved": "true" } } });
    // In one go: while it is there, its approval counts.
    let pause = json!({ "spec": { "suspend": true } });
    env.patch("asks", pause).await;
    env.condition("asks", "Ready", "False", "Suspended").await;
    env.plans()
        .patch(&gone, &params, &Patch::Merge(&kept))
        .await
        .unwrap();
    env.plans().delete(&gone, &DeleteParams::default()).await.unwrap();
    env.patch("asks", json!({ "spec": { "suspend": false } })).await;
    env.wait()
        .eventually("another plan waits", async || {
            let pending = env.plan_in("asks", "Pending").await.name_any();
            (pending != gone).then_some(())
        })
        .await;
    assert!(!env.has_role(&role).await);
    let freed = json!({ "metadata": { "finalizers": null } });
    env.plans()
        .patch(&gone, &params, &Patch::Merge(&freed))
        .await
        .unwrap();
}
