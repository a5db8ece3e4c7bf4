//! Trap 3: with kube's controller a panic in one reconcile ends all reconciles of the kind.

use super::{LONG, sized, start};
use crate::test_env::server::Server;
use crate::test_env::{Boom, Widget, WidgetSpec};
use stanchion_kernel::driver::Settings;
use stanchion_kernel::watch::key;
use tokio::time::sleep;

const STEPS: [Boom; 5] = [
    Boom::Validate,
    Boom::Observe,
    Boom::Plan,
    Boom::Apply,
    Boom::Report,
];

#[tokio::test(start_paused = true)]
async fn a_panic_is_one_objects_problem_and_the_others_go_on() {
    let server = Server::default();
    for boom in STEPS {
        let spec = WidgetSpec {
            boom: Some(boom),
            ..sized(1)
        };
        server.widget(&format!("{boom:?}").to_lowercase(), spec);
    }
    server.widget("healthy", sized(1));
    let _operator = start(&server, Settings::default());
    server.until("healthy", Widget::is_ready).await;
    for boom in STEPS {
        let name = format!("{boom:?}").to_lowercase();
        let stuck = |widget: &Widget| {
            widget
                .condition("Reconciling")
                .is_some_and(|it| it.reason == "Panicked")
        };
        server.until(&name, stuck).await;
        // The panic's text may contain anything: it is in the log, and nowhere else.
        let message = &server
            .get(&name)
            .condition("Reconciling")
            .unwrap()
            .message
            .clone();
        assert_eq!(
            *message,
            format!("the operator failed in {name}; its log says more")
        );
    }
    // An object that always panics does not block another.
    sleep(LONG).await;
    server.resize("healthy", 2);
    server.until("healthy", Widget::is_ready).await;
    assert_eq!(server.world.thing("healthy").unwrap().size, 2);

    let scrape = server.scrape();
    let panics = scrape.count(r#"controller_runtime_reconcile_panics_total{controller="toy"}"#);
    assert!(panics >= 5, "{panics}");
    let errors = scrape.count(r#"controller_runtime_reconcile_errors_total{controller="toy"}"#);
    assert_eq!(panics, errors);
    assert_eq!(
        scrape.count(r#"stanchion_problems{controller="toy",class="transient"}"#),
        5
    );
    assert_eq!(
        scrape.count(r#"controller_runtime_active_workers{controller="toy"}"#),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_panicked_recovers_with_its_spec() {
    let server = Server::default();
    let spec = WidgetSpec {
        boom: Some(Boom::Apply),
        ..sized(1)
    };
    server.widget("one", spec);
    let _operator = start(&server, Settings::default());
    server.until("one", |widget| widget.fails_with("Panicked")).await;
    server.change("one", |widget| widget.spec.boom = None);
    server.until("one", Widget::is_ready).await;
    let problems = server
        .scrape()
        .count(r#"stanchion_problems{controller="toy",class="transient"}"#);
    assert_eq!(problems, 0);
}

#[tokio::test(start_paused = true)]
async fn events_of_the_controller_itself_continue_after_a_panic() {
    let server = Server::default();
    server.widget("one", sized(1));
    let _operator = start(&server, Settings::default());
    server.until("one", Widget::is_ready).await;
    assert_eq!(server.world.passes("one"), 1);
    server.world.signal(Vec::new());
    server.world.signal(vec![key(&server.get("one").metadata)]);
    server.until_passes("one", 2).await;
}
