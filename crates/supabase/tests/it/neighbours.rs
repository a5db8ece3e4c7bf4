//! Several projects on one server, and two in one database.

use stanchion_kernel::Class;
use stanchion_supabase::database::{self, Login};
use stanchion_testkit::postgres::{Postgres, Version, extremes};

use crate::bed::{Bed, full_request, password, pools, request_of, target};

#[tokio::test]
async fn a_second_project_gets_logins_of_its_own() {
    for version in extremes() {
        let bed = Bed::new(version).await;
        let first = bed.initialise(&full_request()).await.unwrap();
        assert_eq!(first.names.of(Login::Rest), "authenticator");
        bed.server.execute("postgres", "CREATE DATABASE other").await;
        let (other, request) = (target(&bed.server.url("other")), request_of("default/other"));
        let second = database::initialise(&pools(), &other, &request).await.unwrap();
        for login in Login::ALL {
            assert_ne!(first.names.of(login), second.names.of(login));
        }
        assert_ne!(first.names.internal_database(), second.names.internal_database());
        // Each keeps its names and its passwords.
        assert_eq!(
            bed.inspect(&full_request()).await.unwrap().unwrap().names,
            first.names
        );
        let again = database::initialise(&pools(), &other, &request).await.unwrap();
        assert_eq!((again.ran.len(), again.names), (0, second.names.clone()));
        for (names, database) in [(&first.names, "shop"), (&second.names, "other")] {
            let rest = bed
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
        let meta = bed
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
    let bed = Bed::new(Version::V18).await;
    bed.initialise(&full_request()).await.unwrap();
    let before = crate::state::of(&bed).await;
    let problem = bed.initialise(&request_of("default/other")).await.unwrap_err();
    assert_eq!((problem.class, problem.reason), (Class::Human, "DatabaseTaken"));
    assert!(problem.message.contains("default/shop"), "{problem}");
    assert_eq!(crate::state::of(&bed).await, before);
    // Following the message resolves it.
    bed.execute("UPDATE _stanchion.installation SET project = 'default/other'")
        .await;
    assert_eq!(
        bed.initialise(&request_of("default/other")).await.unwrap().ran,
        Vec::<&str>::new()
    );
}

#[tokio::test]
async fn a_database_that_is_gone_leaves_its_names_to_the_next() {
    let bed = Bed::new(Version::V18).await;
    bed.initialise(&full_request()).await.unwrap();
    bed.server.execute("postgres", "DROP DATABASE shop").await;
    bed.server.execute("postgres", "CREATE DATABASE shop").await;
    let outcome = bed.initialise(&request_of("default/other")).await.unwrap();
    assert_eq!(outcome.names.of(Login::Rest), "authenticator");
}

#[tokio::test]
async fn many_at_once_do_not_get_into_each_others_way() {
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
            database::initialise(&pools, &target, &request)
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
