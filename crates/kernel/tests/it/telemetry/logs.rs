//! Log lines, read from their destination.

use std::{
    io,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use stanchion_kernel::{
    redact::SecretString,
    telemetry::logs::{self, DEFAULT_FILTER, Format},
};
use tracing::{debug, info, subscriber::with_default, warn};
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl io::Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Paper {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn written(format: Format, filter: &str, work: impl FnOnce()) -> String {
    let paper = Paper::default();
    with_default(
        logs::subscriber(format, filter, Vec::new(), paper.clone(), false).unwrap(),
        work,
    );
    String::from_utf8(paper.0.lock().unwrap().clone()).unwrap()
}

fn lines(filter: &str, work: impl FnOnce()) -> Vec<Value> {
    written(Format::Json, filter, work)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_line_names_the_object_and_its_reconcile() {
    let lines = lines("info", || {
        for name in ["one", "two"] {
            logs::reconcile_span("user", Some("shop"), name, Some(3)).in_scope(|| {
                info!(step = "plan", count = 2, "looked");
                warn!("acted");
            });
        }
    });
    assert_eq!(lines.len(), 4);
    let first = &lines[0];
    assert_eq!(first["message"], "looked");
    assert_eq!(first["level"], "INFO");
    assert_eq!(first["controller"], "user");
    assert_eq!(first["namespace"], "shop");
    assert_eq!(first["name"], "one");
    assert_eq!(first["generation"], 3);
    assert_eq!(first["step"], "plan");
    assert_eq!(first["count"], 2);
    assert!(first["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        lines[1]["reconcile_id"], first["reconcile_id"],
        "one reconcile has one id"
    );
    assert_ne!(
        lines[2]["reconcile_id"], first["reconcile_id"],
        "another has another"
    );
    assert_eq!(lines[2]["name"], "two");
}

#[test]
fn each_key_is_in_a_line_once() {
    let text = written(Format::Json, "info", || {
        logs::reconcile_span("user", Some("shop"), "one", Some(3)).in_scope(|| info!("looked"));
    });
    for key in ["\"name\":", "\"namespace\":", "\"target\":", "\"level\":"] {
        assert_eq!(text.matches(key).count(), 1, "{key} in {text}");
    }
}

#[test]
fn an_object_without_a_namespace_has_no_such_field() {
    let lines = lines("info", || {
        logs::reconcile_span("gitlab", None, "large", None).in_scope(|| info!("looked"));
    });
    assert_eq!(lines[0].get("namespace"), None);
    assert_eq!(lines[0].get("generation"), None);
}

#[test]
fn a_strict_filter_keeps_the_object_of_the_lines_that_pass() {
    let lines = lines("warn", || {
        logs::reconcile_span("user", Some("shop"), "one", Some(3)).in_scope(|| {
            info!("not shown");
            warn!("shown");
        });
    });
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["name"], "one");
}

#[test]
fn text_is_for_a_person() {
    let text = written(Format::Text, "info", || {
        logs::reconcile_span("user", Some("shop"), "one", Some(3)).in_scope(|| info!("looked"));
    });
    assert!(
        text.contains("INFO") && text.contains("namespace=\"shop\"") && text.contains("looked"),
        "{text}"
    );
}

#[test]
fn a_secret_in_a_field_is_not_printed() {
    #[derive(Debug)]
    #[expect(dead_code, reason = "read by Debug")]
    struct Login {
        user: &'static str,
        password: SecretString,
    }
    let login = Login {
        user: "app",
        password: SecretString::from("hunter2"),
    };
    for format in [Format::Json, Format::Text] {
        let text = written(
            format,
            "trace",
            || info!(?login, password = ?login.password, "{login:?}"),
        );
        assert!(text.contains("app") && text.contains("[REDACTED]"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_library_that_prints_what_it_reads_is_held_down_at_every_filter() {
    for filter in [
        "trace",
        "trace,tokio_postgres=trace,kube_client=trace,kube_client::client=trace",
    ] {
        let text = written(Format::Json, filter, || {
            warn!(target: "kube_client::client", "{{\"kind\":\"Secret\",\"data\":{{\"p\":\"aHVudGVyMg==\"}}}}");
            debug!(target: "tokio_postgres::query", "executing statement with parameters: [\"hunter2\"]");
            debug!(target: "kube_client::client::builder", "requesting");
        });
        assert!(
            !text.contains("hunter2") && !text.contains("aHVudGVyMg=="),
            "{text}"
        );
        assert!(
            text.contains("requesting"),
            "what is harmless is shown when asked for: {text}"
        );
    }
}

#[test]
fn a_wrong_flag_is_answered_with_what_to_write() {
    let wrong = |filter| {
        logs::subscriber(Format::Json, filter, Vec::new(), io::sink, false)
            .err()
            .unwrap()
            .to_string()
    };
    assert!(
        wrong("a=b=c").contains("info,stanchion_kernel=debug"),
        "{}",
        wrong("a=b=c")
    );
    assert_eq!(
        "yaml".parse::<Format>().unwrap_err().to_string(),
        r#""yaml" is not a log format; use json or text"#
    );
    assert_eq!("json".parse::<Format>().unwrap().to_string(), "json");
    assert!(logs::subscriber(Format::Text, DEFAULT_FILTER, Vec::new(), io::sink, false).is_ok());
}
