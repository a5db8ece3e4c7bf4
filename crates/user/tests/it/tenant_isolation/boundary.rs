//! Objects of others, of the server, and of nobody; and what can be done to others without them.

use kube::api::PostParams;
use serde_json::json;
use stanchion_testkit::postgres::ADMIN;
use stanchion_testkit::wait;
use stanchion_user::Openings;

use super::tenants::{InstanceAccess, Tenants, accesses};
use crate::test_env::{TestEnv, WAIT_TIMEOUT, any, condition, role_name};

/// F3: nothing on a role or a database of another namespace, by any field of a spec, on the default server and on an
/// instance that allows the namespace.
#[tokio::test]
async fn gets_nothing_on_what_belongs_to_another_namespace() {
    for (version, access) in accesses() {
        let tenants = Tenants::new(version, access, Openings::default()).await;
        let (account, vault, den) = (&tenants.account, &tenants.vault, &tenants.den);
        for (request, reason) in [
            (json!({ "database": vault }), "DatabaseNotAllowed"),
            (
                json!({ "databases": [{ "name": vault, "privileges": ["READ"] }] }),
                "DatabaseNotAllowed",
            ),
            (
                json!({ "databases": [{ "name": vault, "owner": true }] }),
                "DatabaseNotAllowed",
            ),
            (
                json!({ "database": vault, "createDatabase": { "enabled": true } }),
                "DatabaseNotAllowed",
            ),
            (json!({ "memberOf": [{ "role": account }] }), "RoleNotAllowed"),
            (
                json!({ "database": format!("{vault}_copy"), "createDatabase": { "enabled": true, "template": vault } }),
                "DatabaseNotAllowed",
            ),
            (
                json!({ "databases": [{ "name": den, "schemas": [{
                    "name": "public", "privileges": ["SELECT"], "defaultPrivilegesForRoles": [account] }] }] }),
                "RoleNotAllowed",
            ),
            (
                json!({ "role": { "parameters": { "role": account } } }),
                "AttributeNotAllowed",
            ),
        ] {
            tenants.refuses(request, reason).await;
        }
        let held = format!(
            "SELECT count(*) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid WHERE r.rolname = '{account}' \
             AND m.member <> current_user::regrole"
        );
        assert_eq!(tenants.bank.server_one(&held).await, "0", "{access:?}");
    }
}

/// F3: the server's own databases and roles, and those of its provider. F22: extensions that are not trusted.
#[tokio::test]
async fn cannot_use_roles_and_databases_of_the_server() {
    for (version, access) in accesses() {
        let tenants = Tenants::new(version, access, Openings::default()).await;
        let den = &tenants.den;
        let rds = tenants.bank.group("").await;
        let rds = {
            let named = format!("rds_{rds}");
            tenants
                .bank
                .database
                .execute(&format!("CREATE ROLE {named}"))
                .await;
            named
        };
        for database in ["postgres", "template1", "template0"] {
            for request in [
                json!({ "database": database }),
                json!({ "databases": [{ "name": database, "owner": true }] }),
                json!({ "databases": [{ "name": database, "privileges": ["READ"] }] }),
            ] {
                tenants.refuses(request, "DatabaseNotAllowed").await;
            }
        }
        for role in [
            "pg_read_all_data",
            "pg_write_all_data",
            "pg_monitor",
            "pg_signal_backend",
            &rds,
        ] {
            tenants
                .refuses(json!({ "memberOf": [{ "role": role }] }), "RoleNotAllowed")
                .await;
        }
        for schema in ["pg_catalog", "pg_toast", "information_schema", "_stanchion"] {
            for request in [
                json!({ "databases": [{ "name": den, "schemas": [{ "name": schema, "privileges": ["SELECT", "EXECUTE"] }] }] }),
                json!({ "databases": [{ "name": den, "privileges": ["READ"], "schemas": [{ "name": schema }] }] }),
                json!({ "databases": [{ "name": den, "schemas": [{
                    "name": schema, "privileges": ["SELECT"], "defaultPrivilegesForRoles": ["postgres"] }] }] }),
                json!({ "createDatabase": { "enabled": true, "schemas": [schema] } }),
            ] {
                tenants.refuses_everywhere(request, "belong to the server").await;
            }
        }
        let said = tenants
            .refuses(
                json!({ "databases": [{ "name": den, "extensions": ["file_fdw"] }] }),
                "ExtensionNotAllowed",
            )
            .await;
        assert!(said.contains("file_fdw"), "{said}");
    }
}

/// F26: an object that names a template leaves no session in it.
#[tokio::test]
async fn leaves_no_session_in_a_database_that_it_may_not_use() {
    let tenants = Tenants::new(any(), InstanceAccess::Default, Openings::default()).await;
    for database in ["template1", &tenants.vault] {
        tenants
            .refuses(json!({ "database": database }), "DatabaseNotAllowed")
            .await;
        let sessions = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' AND application_name = '{}' \
             AND usename <> 'nobody' AND datname <> '{}'",
            tenants.bank.application, tenants.vault
        );
        assert_eq!(tenants.bank.server_one(&sessions).await, "0", "{database}");
    }
}

/// F3: of what no object created, an instance's own namespace may use everything, another one what the instance opens,
/// up to its privileges, and never as owner of the database.
#[tokio::test]
async fn uses_what_nobody_made_only_as_far_as_it_is_opened() {
    let tenants = Tenants::new(any(), InstanceAccess::Guest, Openings::default()).await;
    let (bank, evil) = (&tenants.bank, &tenants.evil);
    let (shared, group) = (evil.database.name(), bank.group("").await);
    tenants
        .refuses(json!({ "database": shared }), "DatabaseNotAllowed")
        .await;
    tenants
        .refuses(json!({ "memberOf": [{ "role": group }] }), "RoleNotAllowed")
        .await;
    bank.instance(
        "main",
        json!({
            "allowedNamespaces": { "names": [evil.namespace] },
            "databases": [
                { "names": [shared], "namespaces": [evil.namespace], "privileges": ["READ"] },
                { "names": ["*"], "namespaces": ["somebody-else"], "privileges": ["OWNER"] },
            ],
            "roles": [{ "names": [group, "pg_monitor"] }],
        }),
    )
    .await;
    let role = role_name();
    let request = json!({
        "database": shared, "privileges": ["CONNECT", "READ"],
        "memberOf": [{ "role": group }, { "role": "pg_monitor" }],
    });
    tenants.tries("reader", &role, request).await;
    evil.ready("reader").await;
    for request in [
        json!({ "database": shared, "privileges": ["WRITE"] }),
        json!({ "database": shared, "privileges": ["TEMPORARY"] }),
        json!({ "database": shared, "databases": [{ "name": shared, "owner": true }] }),
        json!({ "database": shared, "databases": [{ "name": shared, "schemas": [{ "name": "x", "create": true }] }] }),
    ] {
        tenants.refuses(request, "DatabaseNotAllowed").await;
    }
    // In the instance's own namespace everything without a mark can be used, and owned.
    let (own, home) = (role_name(), bank.database.name());
    bank.password("owner", "p").await;
    let request = json!({
        "instanceRef": { "name": "main" }, "memberOf": [{ "role": group }],
        "databases": [{ "name": home, "owner": true }],
    });
    bank.user("owner", &own, request).await;
    bank.ready("owner").await;
}

/// F3: on the default server a database that a person created can be used, as in the guide, unless the operator's flags
/// restrict it; a role never becomes its owner.
#[tokio::test]
async fn uses_the_default_server_as_the_guide_has_it() {
    let tenants = Tenants::new(any(), InstanceAccess::Default, Openings::default()).await;
    let shared = tenants.evil.database.name();
    let role = role_name();
    tenants
        .tries(
            "reader",
            &role,
            json!({ "database": shared, "privileges": ["CONNECT", "READ"] }),
        )
        .await;
    tenants.evil.ready("reader").await;
    let own = json!({ "database": shared, "databases": [{ "name": shared, "owner": true }] });
    tenants.refuses(own, "DatabaseNotAllowed").await;
    let group = tenants.bank.group("").await;
    tenants
        .refuses(json!({ "memberOf": [{ "role": group }] }), "RoleNotAllowed")
        .await;

    let closed = Openings {
        databases: vec!["other_*".into()],
        ..Openings::default()
    };
    let tenants = Tenants::new(any(), InstanceAccess::Default, closed).await;
    tenants
        .refuses(
            json!({ "database": tenants.evil.database.name() }),
            "DatabaseNotAllowed",
        )
        .await;
}

/// F23: a database of the requested name that somebody else created is not adopted: neither one of a person, nor one of
/// another tenant's login.
#[tokio::test]
async fn takes_no_database_that_somebody_else_made() {
    let tenants = Tenants::new(any(), InstanceAccess::Default, Openings::default()).await;
    let create = |name: &str| json!({ "database": name, "createDatabase": { "enabled": true } });
    tenants
        .refuses(create(tenants.evil.database.name()), "DatabaseConflict")
        .await;
    let maker = role_name();
    tenants.bank.password("maker", "p").await;
    let request = json!({ "database": tenants.vault, "role": { "createDatabase": true } });
    tenants.bank.user("maker", &maker, request).await;
    tenants.bank.ready("maker").await;
    let theirs = format!("{maker}_db");
    let server = tenants.bank.database.server();
    let session = server.connect(&maker, "p", &tenants.vault).await.unwrap();
    session
        .batch_execute(&format!("CREATE DATABASE {theirs}"))
        .await
        .unwrap();
    tenants.refuses(create(&theirs), "DatabaseNotAllowed").await;
    // Nor in two steps: an object that uses a shared database as it is does not create it later.
    let (shared, role) = (tenants.evil.database.name(), role_name());
    tenants
        .tries("patient", &role, json!({ "database": shared }))
        .await;
    tenants.evil.ready("patient").await;
    let mut second = create(shared);
    second["createDatabase"]["revokePublic"] = json!(true);
    tenants.tries("patient", &role, second).await;
    tenants
        .evil
        .condition("patient", "Ready", "False", "DatabaseConflict")
        .await;
    let public = format!("SELECT has_database_privilege('public', '{shared}', 'CONNECT')");
    assert_eq!(tenants.evil.server_one(&public).await, "t");
}

/// Held: names that mean harm in every field that names something, an administrator's role as a group, a template's key
/// that leads out of a Secret, and a type of Secret that Kubernetes fills with a token. Nothing of it reaches a server.
#[tokio::test]
async fn cannot_probe_for_names_in_error_messages() {
    let tenants = Tenants::new(any(), InstanceAccess::Default, Openings::default()).await;
    let evil = r#"x"; CREATE ROLE sqli SUPERUSER; --"#;
    let requests = [
        json!({ "database": evil }),
        json!({ "databases": [{ "name": tenants.den, "schemas": [{ "name": evil, "privileges": ["READ"] }] }] }),
        json!({ "databases": [{ "name": tenants.den, "extensions": [evil] }] }),
        json!({ "role": { "parameters": { evil: "x" } } }),
        json!({ "memberOf": [{ "role": evil }] }),
        json!({ "memberOf": [{ "role": r"back\slash" }] }),
        json!({ "memberOf": [{ "role": ADMIN }] }),
        json!({ "credentialsSecret": { "name": "out", "template": { "../../a": "x" } } }),
        json!({ "credentialsSecret": { "name": "out", "type": "kubernetes.io/service-account-token" } }),
    ];
    let roles = "SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles WHERE rolname = 'sqli'";
    for request in requests {
        let user = json!({
            "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": "thief" },
            "spec": { "username": "thief", "database": tenants.den, "passwordSecretRef": { "name": "thief" } },
        });
        let mut user = user;
        for (field, value) in request.as_object().unwrap() {
            user["spec"][field] = value.clone();
        }
        // A type of Secret that does not exist here is not even an object.
        let Ok(user) = serde_json::from_value::<stanchion_api::PostgresUser>(user) else {
            continue;
        };
        tenants.evil.password("thief", "p").await;
        // Some are refused when they are applied, and the others by the operator.
        if tenants
            .evil
            .users()
            .create(&PostParams::default(), &user)
            .await
            .is_ok()
        {
            wait::until(
                &tenants.evil.users(),
                "thief",
                WAIT_TIMEOUT,
                |user: &stanchion_api::PostgresUser| {
                    let ready = condition(user, "Ready");
                    ready.is_some_and(|(status, _)| status == "False")
                },
            )
            .await;
            tenants.evil.delete("thief").await;
            tenants.evil.gone("thief").await;
        }
        assert_eq!(tenants.evil.server_one(roles).await, "", "{request}");
    }
}

/// Held: a role that leaves owns things whose names mean harm, and the owner of a database has set another role for all
/// who connect to it.
#[tokio::test]
async fn a_deleted_user_leaves_no_executable_objects() {
    let env = TestEnv::new(any()).await;
    let role = role_name();
    let operator = env.operator().await;
    env.password("mole", "p").await;
    env.user("mole", &role, json!({ "privileges": ["CONNECT", "CREATE"] }))
        .await;
    env.ready("mole").await;
    let evil = r#""x""; CREATE ROLE sqli_left SUPERUSER; --""#;
    let server = env.database.server();
    let database = env.database.name();
    for statement in [
        format!("CREATE SCHEMA {evil} AUTHORIZATION {role}"),
        format!("CREATE TABLE {evil}.{evil} ({evil} int)"),
        format!("ALTER TABLE {evil}.{evil} OWNER TO {role}"),
        format!("ALTER DATABASE \"{database}\" SET search_path = public"),
        format!("ALTER DATABASE \"{database}\" SET role = '{role}'"),
    ] {
        env.database.execute(&statement).await;
    }
    // The sessions of this operator begin after the role was set. It works as itself, so it still finds that the role's
    // privileges were changed.
    operator.kill().await;
    let revoke = format!("REVOKE CREATE ON DATABASE \"{database}\" FROM {role}");
    server.execute("postgres", &revoke).await;
    let operator = env.operator().await;
    env.look_again(&operator, "mole").await;
    env.ready("mole").await;
    assert_eq!(
        env.words(&role, database).await,
        "CONNECT,CREATE",
        "it works as itself"
    );
    env.delete("mole").await;
    env.gone("mole").await;
    assert!(!env.has_role(&role).await);
    let made = "SELECT count(*) FROM pg_roles WHERE rolname = 'sqli_left'";
    assert_eq!(env.server_one(made).await, "0");
    server
        .execute("postgres", &format!("ALTER DATABASE \"{database}\" RESET ALL"))
        .await;
}
