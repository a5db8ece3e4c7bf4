//! What is wanted and what is there, made of plain values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_api::instance::Endpoints;
use stanchion_api::user::GrantKind;
use stanchion_postgres::server::{Attributes, Powers, SelfGrant};
use stanchion_postgres::{Target as Address, TlsMode};

use crate::server::Server;
use crate::user::catalog::{Catalog, DatabaseFacts, Reach, RoleFacts, Stored};
use crate::user::contents::{Contents, Held, SchemaFacts};
use crate::user::observe::Present;
use crate::user::passwords::Passwords;
use crate::user::plan::differences;
use crate::user::target::{Target, Wanted};
use crate::user::validate::validate;

pub(super) const MARK: &str = "[stanchion PostgresUser ns/alice uid created]";

/// What a manifest asks for.
pub(super) fn wanted(more: &Value) -> Wanted {
    let mut spec = json!({ "username": "alice", "database": "app", "passwordSecretRef": { "name": "s" } });
    for (key, value) in more.as_object().cloned().unwrap_or_default() {
        spec[key] = value;
    }
    let user: PostgresUser = serde_json::from_value(json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser",
        "metadata": { "name": "alice", "namespace": "ns", "uid": "uid" }, "spec": spec,
    }))
    .unwrap();
    match validate(&user) {
        Ok(Target::Present(wanted)) => *wanted,
        _ => panic!("a role"),
    }
}

pub(super) fn server(version: u32, superuser: bool) -> stanchion_postgres::Server {
    stanchion_postgres::Server {
        version,
        in_recovery: false,
        role: "admin".into(),
        login: "admin".into(),
        attributes: Attributes {
            superuser,
            create_role: true,
            ..Attributes::default()
        },
        cloud_admin_of: Vec::new(),
        self_grant: SelfGrant::default(),
        keeps_log_clean: true,
    }
}

pub(super) fn role(comment: &str) -> RoleFacts {
    RoleFacts {
        oid: 1,
        login: true,
        inherit: true,
        create_database: false,
        create_role: false,
        replication: false,
        bypass_rls: false,
        superuser: false,
        connection_limit: -1,
        valid_until: None,
        comment: comment.into(),
        parameters: BTreeMap::new(),
        stored: Stored::Unreadable,
    }
}

/// A server with the database `app`, without the role.
pub(super) fn empty(version: u32, superuser: bool) -> Catalog {
    let app = DatabaseFacts {
        oid: 5,
        owner: "admin".into(),
        open: true,
        acting: true,
        granted: BTreeSet::new(),
        public: ["CONNECT".to_owned(), "TEMPORARY".to_owned()].into(),
    };
    Catalog {
        server: server(version, superuser),
        role: None,
        memberships: BTreeMap::new(),
        existing: [
            ("readers".to_owned(), Reach::default()),
            ("writers".to_owned(), Reach::default()),
        ]
        .into(),
        databases: [("app".to_owned(), app)].into(),
        powers: Powers::default(),
    }
}

/// The same with the role as we made it.
pub(super) fn made(version: u32) -> Catalog {
    let mut catalog = empty(version, true);
    catalog.role = Some(role(MARK));
    if let Some(app) = catalog.databases.get_mut("app") {
        app.granted.insert("CONNECT".into());
    }
    catalog
}

pub(super) fn present(catalog: Catalog, contents: &Contents) -> Present {
    let target = Address::new("db", 5432, "postgres", "admin").unwrap();
    let names = catalog.databases.keys();
    Present {
        contents: names.map(|name| (name.clone(), contents.clone())).collect(),
        catalog,
        server: Server {
            target,
            allowed: Vec::new(),
            endpoints: Endpoints::default(),
            tls: TlsMode::Prefer,
        },
        passwords: Passwords::default(),
        credentials: None,
        stale_secret: None,
    }
}

/// A schema with an owner.
pub(super) fn schema(name: &str, owner: &str) -> Contents {
    let facts = SchemaFacts {
        owner: owner.into(),
        acting: true,
    };
    Contents {
        schemas: [(name.to_owned(), facts)].into(),
        ..Contents::default()
    }
}

pub(super) fn held(kind: GrantKind, schema: &str, owner: Option<&str>, word: &str) -> Held {
    Held {
        kind,
        schema: schema.into(),
        owner: owner.map(Into::into),
        word: word.into(),
    }
}

pub(super) fn shown(wanted: &Wanted, present: &Present) -> String {
    let changes = differences(wanted, present).unwrap();
    let lines: Vec<String> = changes
        .iter()
        .map(|change| change.statement.to_string())
        .collect();
    lines.join("\n")
}
