//! The demo as a whole: it comes to an end, and leaves nothing behind however it ends.

use stanchion_testkit::process::Signal;

use super::place::{Place, processes_of};
use crate::operator::text;

#[tokio::test]
async fn once_ends_when_all_is_ready() {
    let place = Place::new();
    let output = place.run(&["--once"]).await;
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    for words in [
        "never for production",
        "All ready after",
        "export KUBECONFIG=",
        "psql ",
    ] {
        assert!(said.contains(words), "no {words:?} in:\n{said}");
    }
    for line in [
        "PostgresUser/alice  Ready [",
        "PostgresUser/orders  Ready [",
        "PostgresUser/reporting  Ready [",
        "PostgresPolicy/stock  Ready [",
        "SupabaseProject/shop  Running [",
        r#"anon key, decoded: {"role":"anon""#,
    ] {
        assert!(said.contains(line), "no {line:?} in:\n{said}");
    }
    assert!(
        !said.contains('\x1b'),
        "no colours where there is no terminal:\n{said}"
    );
    place.is_clean().await;
}

#[tokio::test]
async fn killed_it_leaves_nothing_behind_either() {
    let place = Place::new();
    let sandbox = place.start(&[]);
    sandbox.says("PostgreSQL   127.0.0.1").await;
    assert_ne!(processes_of(&place.temporary()), Vec::<String>::new());
    sandbox.end(Signal::Kill).await;
    place.is_clean().await;
}
