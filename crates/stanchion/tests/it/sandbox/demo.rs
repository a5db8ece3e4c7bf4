//! The complete demo: it ends, and leaves nothing behind.

use super::directory::Place;
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
        "GitlabInstance/code  Ready [",
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
