//! A server with two tenants: a bank with a role and a database, and an attacker in the namespace `evil`.

use serde_json::{Value, json};
use stanchion_testkit::postgres::{Version, versions};
use stanchion_user::Openings;

use crate::test_env::{How, Running, TestEnv, message, role_name};

pub(super) struct Tenants {
    pub(super) bank: TestEnv,
    pub(super) evil: TestEnv,
    _operator: Running,
    /// The bank's role.
    pub(super) account: String,
    /// The bank's database, which the operator created.
    pub(super) vault: String,
    /// A database that the operator created for the other namespace.
    pub(super) den: String,
    /// How the other namespace refers to the server.
    through: Value,
}

/// How the attacker reaches the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum InstanceAccess {
    /// As the operator's default server.
    Default,
    /// As an instance of the bank's that allows the namespace.
    Guest,
}

/// The oldest and the newest version, each with another way.
pub(super) fn accesses() -> Vec<(Version, InstanceAccess)> {
    let all = versions();
    vec![
        (all[0], InstanceAccess::Default),
        (all[all.len() - 1], InstanceAccess::Guest),
    ]
}

impl Tenants {
    pub(super) async fn new(version: Version, access: InstanceAccess, openings: Openings) -> Self {
        let bank = TestEnv::new(version).await;
        let evil = TestEnv::in_namespace("evil", version).await;
        let operator = bank.start(How {
            openings,
            more: vec![evil.namespace.clone()],
            ..bank.how().await
        });
        let through = match access {
            InstanceAccess::Default => Value::Null,
            InstanceAccess::Guest => json!({ "name": "main", "namespace": bank.namespace }),
        };
        let allowed = json!({ "names": [evil.namespace] });
        bank.instance("main", json!({ "allowedNamespaces": allowed }))
            .await;
        let (account, villain) = (role_name(), role_name());
        let (vault, den) = (format!("{account}_vault"), format!("{villain}_den"));
        let own = |database: &str| {
            json!({
                "database": database, "privileges": ["CONNECT", "OWNER"],
                "createDatabase": { "enabled": true, "owner": true },
            })
        };
        bank.password("account", "p").await;
        bank.user("account", &account, own(&vault)).await;
        bank.ready("account").await;
        let secret =
            format!("SET ROLE {account}; CREATE TABLE public.secret AS SELECT 'crown jewels'::text AS it");
        bank.database.server().execute(&vault, &secret).await;
        evil.password("villain", "p").await;
        let tenants = Self {
            bank,
            evil,
            _operator: operator,
            account,
            vault,
            den: den.clone(),
            through,
        };
        tenants.tries("villain", &villain, own(&den)).await;
        tenants.evil.ready("villain").await;
        tenants
    }

    /// Applies a user of the attacker.
    pub(super) async fn tries(&self, name: &str, role: &str, mut request: Value) {
        self.evil.password(name, "p").await;
        if !self.through.is_null() {
            request["instanceRef"] = self.through.clone();
        }
        if request["database"].is_null() {
            request["database"] = json!(self.den);
        }
        self.evil.user(name, role, request).await;
    }

    /// The operator refuses such a user, and the API server does not store it.
    pub(super) async fn refuses_everywhere(&self, mut request: Value, words: &str) {
        request["username"] = json!("thief");
        request["database"] = json!(self.den);
        request["passwordSecretRef"] = json!({ "name": "thief" });
        if !self.through.is_null() {
            request["instanceRef"] = self.through.clone();
        }
        let user: stanchion_api::PostgresUser = serde_json::from_value(json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": "thief" },
            "spec": request,
        }))
        .unwrap();
        let problem = stanchion_user::check(&user).err().unwrap();
        assert!(
            problem.reason == "InvalidSpec" && problem.message.contains(words),
            "{request}: {problem}"
        );
        let stored = self
            .evil
            .users()
            .create(&kube::api::PostParams::default(), &user)
            .await;
        assert!(stored.unwrap_err().to_string().contains(words), "{request}");
    }

    /// Applies a user of the attacker, which is refused with this reason, and creates no role.
    pub(super) async fn refuses(&self, request: Value, reason: &str) -> String {
        let role = role_name();
        let name = role.replace('_', "-");
        self.tries(&name, &role, request.clone()).await;
        let user = self.evil.condition(&name, "Ready", "False", reason).await;
        assert!(!self.evil.has_role(&role).await, "{request}");
        self.evil.delete(&name).await;
        self.evil.gone(&name).await;
        let said = message(&user, "Ready");
        assert!(
            !said.contains(&self.bank.namespace),
            "nothing foreign is named: {said}"
        );
        said
    }
}
