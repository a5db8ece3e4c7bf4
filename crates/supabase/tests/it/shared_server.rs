//! Several projects on one server, and two in one database.

use stanchion_kernel::Class;
use stanchion_supabase::database::Login;
use stanchion_testkit::postgres::{Postgres, Version, extremes};

use crate::database_env::{self, DatabaseEnv, full_request, password, pools, request_of, target};

#[tokio::test]
async fn a_second_project_gets_logins_of_its_own() {
    for version in extremes() {
        let db_env = DatabaseEnv::new(version).await;
        let first = db_env.initialise(&full_request()).await.unwrap();
        assert_eq!(first.names.of(Login::Rest), "authenticator");
        db_env.server.execute("postgres", "CREATE DATABASE other").await;
        let (other, request) = (target(&db_env.server.url("other")), request_of("default/other"));
        let second = database_env::initialise(&pools(), &other, &request)
            .await
            .unwrap();
        for login in Login::ALL {
            assert_ne!(first.names.of(login), second.names.of(login));
        }
        assert_ne!(first.names.internal_database(), second.names.internal_database());
        // Each keeps its names and its passwords.
        assert_eq!(
            db_env.inspect(&full_request()).await.unwrap().unwrap().names,
            first.names
        );
        let again = database_env::initialise(&pools(), &other, &request)
            .await
            .unwrap();
        assert_eq!((again.ran.len(), again.names), (0, second.names.clone()));
        for (names, database) in [(&first.names, "shop"), (&second.names, "other")] {
            let rest = db_env
                .server
                .connect(&names.of(Login::Rest), &password(Login::Rest), database)
                .await
                .unwrap();
            rest.batch_execute("SET ROLE anon; SELECT FROM public.t")
                .await
                .unwrap_err();
            rest.batch_execute("SET ROLE authenticated; SELECT auth.uid()")
                .await
                .unwrap();
        }
        // The second project's services cannot act for the first one's.
        let meta = db_env
            .server
            .connect(&second.names.of(Login::Meta), &password(Login::Meta), "other")
            .await
            .unwrap();
        meta.batch_execute("SET ROLE dashboard_user").await.unwrap_err();
        meta.batch_execute("SET ROLE supabase_auth_admin")
            .await
            .unwrap_err();
    }
}

#[tokio::test]
async fn a_database_of_another_project_is_not_touched() {
    let db_env = DatabaseEnv::new(Version::V18).await;
    db_env.initialise(&full_request()).await.unwrap();
    let before = crate::database_dump::of(&db_env).await;
    let problem = db_env.initialise(&request_of("default/other")).await.unwrap_err();
    assert_eq!((problem.class, problem.reason), (Class::Human, "DatabaseTaken"));
    assert!(problem.message.contains("default/shop"), "{problem}");
    assert_eq!(crate::database_dump::of(&db_env).await, before);
    // Following the message resolves it.
    db_env
        .execute("UPDATE _stanchion.installation SET project = 'default/other'")
        .await;
    assert_eq!(
        db_env.initialise(&request_of("default/other")).await.unwrap().ran,
        Vec::<&str>::new()
    );
}

#[tokio::test]
async fn a_database_that_is_gone_leaves_its_names_to_the_next() {
    let db_env = DatabaseEnv::new(Version::V18).await;
    db_env.initialise(&full_request()).await.unwrap();
    db_env.server.execute("postgres", "DROP DATABASE shop").await;
    db_env.server.execute("postgres", "CREATE DATABASE shop").await;
    let outcome = db_env.initialise(&request_of("default/other")).await.unwrap();
    assert_eq!(outcome.names.of(Login::Rest), "authenticator");
}

#[tokio::test]
async fn many_projects_initialise_concurrently() {
    let server = Postgres::start(Version::V18).await;
    let pools = pools();
    let count = 6;
    for number in 0..count {
        server
            .execute("postgres", &format!("CREATE DATABASE shop{number}"))
            .await;
    }
    let each = (0..count).map(|number| {
        let (pools, target) = (pools.clone(), target(&server.url(&format!("shop{number}"))));
        tokio::spawn(async move {
            let request = request_of(&format!("default/shop{number}"));
            database_env::initialise(&pools, &target, &request)
                .await
                .unwrap()
                .names
                .of(Login::Rest)
        })
    });
    let mut names = Vec::new();
    for task in each.collect::<Vec<_>>() {
        names.push(task.await.unwrap());
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(names.contains(&"authenticator".to_owned()));
}
