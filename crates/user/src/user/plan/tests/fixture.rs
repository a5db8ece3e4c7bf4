//! Requests and states for tests, from plain values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use stanchion_api::PostgresUser;
use stanchion_api::instance::Endpoints;
use stanchion_api::user::GrantKind;
use stanchion_kernel::context::Parent;
use stanchion_kernel::marks::{Bearer, Mark, Marks, Origin};
use stanchion_kernel::redact::FingerprintKey;
use stanchion_postgres::server::{Attributes, Powers, SelfGrant};
use stanchion_postgres::session::Security;
use stanchion_postgres::{ConnectionConfig, TlsMode};

use crate::rules::Rules;
use crate::server::{Openings, Server};
use crate::user::catalog::databases::{Contents, DatabaseFacts, Held, SchemaFacts};
use crate::user::catalog::{Catalog, ExtensionFacts, MembershipGrant, RoleFacts, RoleRef, Stored, Viewer};
use crate::user::observe::Current;
use crate::user::passwords::{Passwords, Source};
use crate::user::plan::{Change, differences};
use crate::user::target::{Identity, Wanted};
use crate::user::validate::validate;

/// The comment that the operator would write.
pub(super) fn mark(role: &str) -> String {
    let owner = Identity {
        namespace: "ns".into(),
        name: "alice".into(),
        uid: "uid".into(),
    }
    .owner();
    let origin = Origin::Created;
    viewer()
        .marks
        .join("", &Mark { owner, origin }, Bearer::Role(role))
}

/// An object of the namespace `ns`, at a server that opens every role.
pub(super) fn viewer() -> Viewer {
    let openings = Openings {
        roles: vec!["*".into()],
        adoption: vec!["*".into()],
        ..Openings::default()
    };
    Viewer {
        rules: Arc::new(Rules::of_default("ns", &openings)),
        marks: Marks::new(Arc::new(FingerprintKey::from_bytes(&[7; 32]).unwrap())),
    }
}

/// The request of a spec.
pub(super) fn wanted(more: &Value) -> Wanted {
    validate(&user(more)).unwrap_or_else(|problem| panic!("{problem}"))
}

fn user(more: &Value) -> PostgresUser {
    let mut spec = json!({ "username": "alice", "database": "app", "passwordSecretRef": { "name": "s" } });
    for (key, value) in more.as_object().cloned().unwrap_or_default() {
        spec[key] = value;
    }
    serde_json::from_value(json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser",
        "metadata": { "name": "alice", "namespace": "ns", "uid": "uid" }, "spec": spec,
    }))
    .unwrap()
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

/// The role `alice` with this comment.
pub(super) fn role(comment: &str) -> RoleFacts {
    role_of("alice", comment)
}

pub(super) fn role_of(name: &str, comment: &str) -> RoleFacts {
    let viewer = viewer();
    let (text, mark) = viewer.marks.read(comment, Bearer::Role(name));
    RoleFacts {
        text: text.into(),
        mark,
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

/// A membership that the administrator may revoke.
pub(super) fn granted_by(grantor: &str) -> MembershipGrant {
    MembershipGrant {
        grantor: grantor.into(),
        revocable: true,
        ..MembershipGrant::default()
    }
}

/// A trusted extension that requires others.
pub(super) fn extension(name: &str, requires: &[&str]) -> (String, ExtensionFacts) {
    let facts = ExtensionFacts {
        trusted: true,
        requires: requires.iter().map(ToString::to_string).collect(),
    };
    (name.to_owned(), facts)
}

/// A server with the database `app`, without the role.
pub(super) fn empty(version: u32, superuser: bool) -> Catalog {
    let app = DatabaseFacts {
        oid: 5,
        owner: "admin".into(),
        open: true,
        acting: true,
        template: false,
        text: String::new(),
        mark: None,
        owner_mark: None,
        granted: BTreeSet::new(),
        revocable: BTreeSet::new(),
        public: ["CONNECT".to_owned(), "TEMPORARY".to_owned()].into(),
    };
    Catalog {
        viewer: viewer(),
        server: server(version, superuser),
        role: None,
        memberships: BTreeMap::new(),
        existing: [
            ("readers".to_owned(), RoleRef::default()),
            ("writers".to_owned(), RoleRef::default()),
        ]
        .into(),
        databases: [("app".to_owned(), app)].into(),
        template: None,
        user_parameters: ["search_path", "work_mem", "statement_timeout", "jit"]
            .map(Into::into)
            .into(),
        parameters: [
            "search_path",
            "work_mem",
            "statement_timeout",
            "jit",
            "session_preload_libraries",
        ]
        .map(Into::into)
        .into(),
        extensions: [extension("pgcrypto", &[])].into(),
        powers: Powers::default(),
    }
}

/// The same with the role as the operator creates it.
pub(super) fn made(version: u32) -> Catalog {
    let mut catalog = empty(version, true);
    catalog.role = Some(role(&mark("alice")));
    if let Some(app) = catalog.databases.get_mut("app") {
        app.granted.insert("CONNECT".into());
    }
    catalog
}

/// A state, and what was decided about its passwords.
pub(super) struct There {
    pub(super) current: Current,
    pub(super) passwords: Passwords,
}

pub(super) fn current(catalog: Catalog, contents: &Contents) -> There {
    let target = ConnectionConfig::new("db", 5432, "postgres", "admin").unwrap();
    let names = catalog.databases.keys();
    let current = Current {
        parent: Parent::of(&user(&json!({}))),
        contents: names.map(|name| (name.clone(), contents.clone())).collect(),
        catalog,
        logins: Vec::new(),
        sessions: BTreeMap::new(),
        security: Security {
            encrypted: true,
            verified: true,
        },
        server: Server {
            target,
            viewer: viewer(),
            endpoints: Endpoints::default(),
            tls: TlsMode::Prefer,
        },
        source: Source::None,
        credentials: None,
        stale_secrets: Vec::new(),
    };
    There {
        current,
        passwords: Passwords::default(),
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

pub(super) fn shown(wanted: &Wanted, there: &There) -> String {
    let changes = differences(wanted, &there.current, &there.passwords).unwrap();
    let lines: Vec<String> = changes
        .iter()
        .flat_map(Change::statements)
        .map(|statement| unsealed(&statement.to_string()))
        .collect();
    lines.join("\n")
}

/// Removes what depends on the key.
fn unsealed(statement: &str) -> String {
    let (before, after) = statement.split_once(" v1.").unwrap_or((statement, ""));
    let rest = after
        .split_once(']')
        .map_or(String::new(), |(_, rest)| format!("]{rest}"));
    let whole = format!("{before}{rest}");
    match whole.split_once(" OID ") {
        Some((before, _)) => format!("{before} OID …"),
        None => whole,
    }
}
