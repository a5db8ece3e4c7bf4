//! F2: objects of a deleted user never run with more privileges.

use serde_json::json;

use crate::bed::{Bed, condition, message, role_name};

/// a2, a26: a SECURITY DEFINER function of a deleted user makes nobody a superuser, if the administrator is one; and
/// gives nobody another's role, if the administrator may only create roles.
#[tokio::test]
async fn a_function_that_was_left_behind_runs_as_nobody_stronger() {
    Bed::on_every_version(async |bed| {
        let (mole, caller, bank) = (role_name(), role_name(), role_name());
        let den = format!("{mole}_db");
        let server = bed.database.server();
        let _operator = bed.operator().await;
        for (name, role, wish) in [
            ("bank", &bank, json!({})),
            (
                "mole",
                &mole,
                json!({ "database": den, "privileges": ["OWNER"], "createDatabase": { "enabled": true, "owner": true } }),
            ),
            ("caller", &caller, json!({ "database": den, "privileges": ["CONNECT"] })),
        ] {
            bed.password(name, "p").await;
            bed.user(name, role, wish).await;
            bed.ready(name).await;
        }
        let session = server.connect(&mole, "p", &den).await.unwrap();
        session
            .batch_execute(
                "CREATE FUNCTION public.pwn(command text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS \
                 $$ BEGIN EXECUTE command; RETURN current_user; END $$; \
                 CREATE VIEW public.peek AS SELECT rolname FROM pg_roles; GRANT SELECT ON public.peek TO PUBLIC",
            )
            .await
            .unwrap();
        drop(session);
        bed.delete("mole").await;
        bed.gone("mole").await;
        let told = bed.event("mole", "ObjectsDisarmed").await;
        assert!(told.contains("function public.pwn(text)") && told.contains("view public.peek"), "{told}");

        let session = server.connect(&caller, "p", &den).await.unwrap();
        for command in [format!("ALTER ROLE {caller} SUPERUSER"), format!("GRANT {bank} TO {caller}")] {
            let call = format!("SELECT public.pwn('{command}')");
            assert!(session.batch_execute(&call).await.is_err(), "{command}");
        }
        let free = format!("GRANT EXECUTE ON FUNCTION public.pwn(text) TO {caller}");
        server.execute(&den, &free).await;
        let who = session.query_one("SELECT public.pwn('SELECT 1')", &[]).await.unwrap();
        assert_eq!(who.get::<_, String>(0), caller, "it runs as who calls it");
        assert_eq!(bed.attribute(&caller, "rolsuper").await, "f");
    })
    .await;
}

/// F2: `reassignTo` is checked like a membership: no role of others, no powerful one.
#[tokio::test]
async fn the_heir_must_be_ones_own() {
    let bed = Bed::new(crate::bed::any()).await;
    let mut how = bed.how().await;
    how.openings = stanchion_user::Openings::default();
    let operator = bed.start(how);
    let powerful = bed.group("CREATEROLE").await;
    let nobodys = bed.group("").await;
    for heir in [
        powerful,
        nobodys,
        "postgres".to_owned(),
        "pg_read_all_data".to_owned(),
    ] {
        let role = role_name();
        let name = role.replace('_', "-");
        bed.password(&name, "p").await;
        bed.user(&name, &role, json!({ "onDelete": { "reassignTo": heir } }))
            .await;
        bed.ready(&name).await;
        bed.delete(&name).await;
        let user = bed.condition(&name, "Ready", "False", "CleanupBlocked").await;
        assert!(message(&user, "Ready").contains("onDelete.reassignTo"), "{heir}");
        assert!(condition(&user, "Ready").is_some());
        bed.annotate(&name, "db.example.com/force-release", "true").await;
        bed.gone(&name).await;
    }
    let (heir, role) = (role_name(), role_name());
    bed.password("heir", "p").await;
    bed.user("heir", &heir, json!({})).await;
    bed.ready("heir").await;
    bed.password("leaving", "p").await;
    bed.user(
        "leaving",
        &role,
        json!({ "privileges": ["CONNECT", "CREATE"], "onDelete": { "reassignTo": heir } }),
    )
    .await;
    bed.ready("leaving").await;
    bed.database
        .execute(&format!("SET ROLE {role}; CREATE SCHEMA theirs"))
        .await;
    bed.delete("leaving").await;
    bed.gone("leaving").await;
    let owner = "SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'theirs'";
    assert_eq!(bed.one(owner).await, heir);
    drop(operator);
}

/// F2: a role that bears a keeper's name and is not what the operator makes gets nothing. It does not keep the object
/// either: another keeper takes its place.
#[tokio::test]
async fn a_false_keeper_gets_nothing() {
    let bed = Bed::new(crate::bed::any()).await;
    let role = role_name();
    let _operator = bed.operator().await;
    bed.password("alice", "p").await;
    bed.user("alice", &role, json!({ "privileges": ["CONNECT", "CREATE"] }))
        .await;
    bed.ready("alice").await;
    bed.database
        .execute(&format!("SET ROLE {role}; CREATE SCHEMA kept"))
        .await;
    let keeper = keeper_of(&bed).await;
    bed.database
        .execute(&format!("CREATE ROLE {keeper} LOGIN PASSWORD 'p'"))
        .await;
    bed.delete("alice").await;
    bed.gone("alice").await;
    let owner = "SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'kept'";
    assert_eq!(bed.one(owner).await, format!("{keeper}_2"));
    bed.database.execute(&format!("DROP ROLE {keeper}")).await;
}

/// A keeper whose seal cannot be checked, since the installation's key was lost, gets nothing more and keeps no object
/// from being deleted. Where every name of a keeper is taken, the condition says which role is in the way.
#[tokio::test]
async fn a_keeper_of_a_lost_key_blocks_no_deletion() {
    let bed = Bed::new(crate::bed::any()).await;
    let operator = bed.operator().await;
    bed.password("p", "p").await;
    let (first, second) = (role_name(), role_name());
    for (name, role) in [("first", &first), ("second", &second)] {
        let spec = json!({ "privileges": ["CONNECT", "CREATE"], "passwordSecretRef": { "name": "p" } });
        bed.user(name, role, spec).await;
        bed.ready(name).await;
        bed.database
            .execute(&format!("SET ROLE {role}; CREATE SCHEMA {name}"))
            .await;
    }
    let keeper = keeper_of(&bed).await;
    let seal = "0123456789abcdef0123456789abcdef";
    let taken: Vec<String> = ["", "_2", "_3", "_4"].map(|end| format!("{keeper}{end}")).into();
    for name in &taken {
        let mark = format!(
            "[stanchion Keeper {}/- - created v1.{seal}.{seal}]",
            bed.namespace
        );
        bed.database
            .execute(&format!(
                "CREATE ROLE {name} NOLOGIN; COMMENT ON ROLE {name} IS '{mark}'"
            ))
            .await;
    }
    bed.delete("first").await;
    let user = bed.condition("first", "Ready", "False", "CleanupBlocked").await;
    assert!(message(&user, "Ready").contains(&keeper));
    bed.database.execute(&format!("DROP ROLE {}", taken[3])).await;
    bed.look_again(&operator, "first").await;
    bed.gone("first").await;
    bed.delete("second").await;
    bed.gone("second").await;
    for schema in ["first", "second"] {
        let owner = format!("SELECT nspowner::regrole FROM pg_namespace WHERE nspname = '{schema}'");
        assert_eq!(bed.one(&owner).await, taken[3]);
    }
    bed.database
        .execute(&format!("DROP ROLE {}, {}, {}", taken[0], taken[1], taken[2]))
        .await;
}

async fn keeper_of(bed: &Bed) -> String {
    let oid = format!(
        "SELECT oid FROM pg_database WHERE datname = '{}'",
        bed.database.name()
    );
    let oid = bed.server_one(&oid).await.parse().unwrap();
    stanchion_postgres::handover::Keeper::of(oid, &bed.namespace)
        .name()
        .to_owned()
}
