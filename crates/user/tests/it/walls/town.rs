//! A server with two tenants: a bank with a role and a database, and an attacker in the namespace `evil`.

use serde_json::{Value, json};
use stanchion_testkit::postgres::{Version, versions};
use stanchion_user::Openings;

use crate::bed::{Bed, How, Running, message, role_name};

pub(super) struct Town {
    pub(super) bank: Bed,
    pub(super) evil: Bed,
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
pub(super) enum Way {
    /// As the operator's default server.
    Default,
    /// As an instance of the bank's that allows the namespace.
    Guest,
}

/// The oldest and the newest version, each with another way.
pub(super) fn ways() -> Vec<(Version, Way)> {
    let all = versions();
    vec![(all[0], Way::Default), (all[all.len() - 1], Way::Guest)]
}

impl Town {
    pub(super) async fn new(version: Version, way: Way, openings: Openings) -> Self {
        let bank = Bed::new(version).await;
        let evil = Bed {
            namespace: bank.cluster.namespace("evil").await,
            ..Bed::new(version).await
        };
        let operator = bank.start(How {
            openings,
            more: vec![evil.namespace.clone()],
            ..bank.how().await
        });
        let through = match way {
            Way::Default => Value::Null,
            Way::Guest => json!({ "name": "main", "namespace": bank.namespace }),
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
        let town = Self {
            bank,
            evil,
            _operator: operator,
            account,
            vault,
            den: den.clone(),
            through,
        };
        town.tries("villain", &villain, own(&den)).await;
        town.evil.ready("villain").await;
        town
    }

    /// Applies a user of the attacker.
    pub(super) async fn tries(&self, name: &str, role: &str, mut wish: Value) {
        self.evil.password(name, "p").await;
        if !self.through.is_null() {
            wish["instanceRef"] = self.through.clone();
        }
        if wish["database"].is_null() {
            wish["database"] = json!(self.den);
        }
        self.evil.user(name, role, wish).await;
    }

    /// Applies a user of the attacker, which is refused with this reason, and creates no role.
    pub(super) async fn refuses(&self, wish: Value, reason: &str) -> String {
        let role = role_name();
        let name = role.replace('_', "-");
        self.tries(&name, &role, wish.clone()).await;
        let user = self.evil.condition(&name, "Ready", "False", reason).await;
        assert!(!self.evil.has_role(&role).await, "{wish}");
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
