//! Powers that a role must not have, and options of its memberships.

use std::sync::Arc;

use serde_json::json;
use stanchion_postgres::server::Attributes;

use super::fixture::{current, granted_by, made, shown, wanted};
use crate::user::catalog::databases::Contents;
use crate::user::catalog::{MembershipFacts, MembershipGrant};
use crate::user::passwords::{PasswordChange, Passwords};
use crate::user::plan::role;
use crate::user::powers;

#[test]
fn a_power_that_the_instance_does_not_allow_goes() {
    let request = wanted(&json!({}));
    let spec: stanchion_api::instance::PostgresInstanceSpec = serde_json::from_value(
        json!({ "host": "db", "adminSecretRef": { "name": "s" }, "allowedAttributes": ["bypassRLS"] }),
    )
    .unwrap();
    let catalog = |instance: bool, adopted: bool| {
        let mut catalog = made(150_000);
        if let Some(role) = &mut catalog.role {
            (role.replication, role.bypass_rls, role.create_database) = (true, true, true);
            if let (true, Some(found)) = (adopted, &mut role.mark) {
                found.mark.origin = stanchion_kernel::marks::Origin::Adopted;
            }
        }
        if instance {
            catalog.viewer.rules = Arc::new(crate::rules::Rules::of_instance("ns", "ns", &spec));
        }
        let changes = role::changes(&request, &catalog, &Passwords::default()).unwrap();
        let altered = changes.iter().map(|change| change.statement.to_string());
        altered.filter(|sql| sql.starts_with("ALTER")).collect::<Vec<_>>()
    };
    assert_eq!(catalog(true, false), [r#"ALTER ROLE "alice" NOREPLICATION"#]);
    assert_eq!(
        catalog(true, true),
        [] as [String; 0],
        "an adopted role keeps what it had"
    );
    assert_eq!(catalog(false, false), [] as [String; 0], "no object gave it");
}

/// The statement that takes a power fails where the administrator lacks the right to it, and a new password with it.
#[test]
fn a_power_that_the_administrator_cannot_take_stays_and_blocks_no_password() {
    let request = wanted(&json!({}));
    let spec: stanchion_api::instance::PostgresInstanceSpec =
        serde_json::from_value(json!({ "host": "db", "adminSecretRef": { "name": "s" } })).unwrap();
    let plan = |request: &crate::user::target::Wanted, version: u32, ours: &[&str]| {
        let mut catalog = made(version);
        let has = |name: &str| ours.contains(&name);
        catalog.server.attributes = Attributes {
            superuser: has("superuser"),
            create_role: true,
            bypass_rls: has("bypassRLS"),
            replication: has("replication"),
            ..Attributes::default()
        };
        if let Some(role) = &mut catalog.role {
            (
                role.superuser,
                role.replication,
                role.bypass_rls,
                role.create_role,
            ) = (true, true, true, true);
        }
        catalog.viewer.rules = Arc::new(crate::rules::Rules::of_instance("ns", "ns", &spec));
        let passwords = Passwords {
            main: Some(PasswordChange::Set("SCRAM-SHA-256$secret".into())),
            ..Passwords::default()
        };
        let changes = role::changes(request, &catalog, &passwords).unwrap();
        let altered = changes.iter().map(|change| change.statement.to_string());
        let altered: Vec<_> = altered.filter(|sql| sql.starts_with("ALTER")).collect();
        (altered.join("; "), powers::kept(request, &catalog))
    };
    let takes = |version, ours: &[&str]| plan(&request, version, ours);
    let sets = |what: &str| format!(r#"ALTER ROLE "alice"{what} PASSWORD '[redacted]'"#);
    let all = " NOCREATEROLE NOREPLICATION NOBYPASSRLS NOSUPERUSER";
    assert_eq!(takes(150_000, &["superuser"]), (sets(all), vec![]));
    assert_eq!(
        takes(150_000, &["bypassRLS", "replication"]),
        (
            sets(" NOCREATEROLE"),
            vec!["superuser", "replication", "bypassRLS"]
        )
    );
    assert_eq!(
        takes(160_000, &["bypassRLS"]),
        (
            sets(" NOCREATEROLE NOBYPASSRLS"),
            vec!["superuser", "replication"]
        )
    );
    // What the spec takes is tried, and the server's refusal is reported.
    let explicit = wanted(&json!({ "role": { "bypassRLS": false } }));
    assert_eq!(plan(&explicit, 150_000, &[]).0, sets(" NOCREATEROLE NOBYPASSRLS"));
}

#[test]
fn an_option_is_taken_from_every_grant_that_has_it() {
    let request = wanted(&json!({ "memberOf": [{ "role": "readers", "set": false }] }));
    let grant = |grantor: &str, admin: bool, revocable: bool| MembershipGrant {
        admin,
        set: true,
        revocable,
        ..granted_by(grantor)
    };
    let facts = MembershipFacts {
        admin: true,
        set: Some(true),
        grants: vec![
            grant("admin", false, true),
            grant("dba", true, true),
            grant("owner", true, false),
        ],
        ..MembershipFacts::default()
    };
    let mut catalog = made(160_000);
    catalog.memberships.insert("readers".into(), facts);
    insta::assert_snapshot!(shown(&request, &current(catalog, &Contents::default())), @r#"
    REVOKE SET OPTION FOR "readers" FROM "alice" GRANTED BY "admin"
    REVOKE ADMIN OPTION FOR "readers" FROM "alice" GRANTED BY "dba"
    REVOKE SET OPTION FOR "readers" FROM "alice" GRANTED BY "dba"
    "#);
}
