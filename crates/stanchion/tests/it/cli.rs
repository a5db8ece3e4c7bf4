//! The command line without a cluster.

use stanchion_testkit::scratch::Scratch;

use crate::operator::{command, failure, stdout, text};

/// The text that must not appear.
const SECRET: &str = "hunter2-unseen";

#[test]
fn help_and_version_are_answered_on_standard_output() {
    let help = stdout(["--help"]);
    for name in ["run", "crds", "rbac"] {
        assert!(help.contains(&format!("\n  {name} ")), "{help}");
    }
    assert!(
        !help.contains("\n  generate"),
        "a tool of the repository, not of its users"
    );
    assert!(stdout(["--version"]).starts_with("stanchion "));
}

#[test]
fn a_wrong_command_line_is_one_line_and_exit_code_2() {
    let wrong: [(&[&str], &str); 14] = [
        (&["fly"], "unrecognized subcommand 'fly'"),
        (&["run", "--no-such-flag"], "--no-such-flag"),
        (
            &["run", "--controller", "user"],
            "similar argument exists: '--controllers'",
        ),
        (&["run", "--controllers", "nobody"], "[possible values: user"),
        (&["run", "--health-addr", "here"], "--health-addr"),
        (&["run", "--concurrency", "0"], "1..=1000"),
        (&["run", "--log-format", "xml"], "use json or text"),
        (&["run", "--log", "loud=very"], "is not a log filter"),
        (&["run", "--otlp-endpoint", "collector"], "http://collector:4318"),
        (
            &["run", "--webhook-url", "http://plain"],
            "https://127.0.0.1:9443",
        ),
        (
            &["run", "--no-webhooks", "--webhook-addr", "127.0.0.1:0"],
            "cannot be used with",
        ),
        (
            &["run", "--postgres-url", "x", "--postgres-url-file", "y"],
            "cannot be used with",
        ),
        (
            &["run", "--postgres-url-file", "/does/not/exist"],
            "/does/not/exist",
        ),
        (&["rbac", "--service-account", "alone"], "NAMESPACE/NAME"),
    ];
    for (arguments, expected) in wrong {
        let (line, code) = failure(&command(arguments).output().unwrap());
        assert!(line.contains(expected), "{arguments:?}: {line}");
        assert_eq!(code, Some(2), "{arguments:?}: {line}");
    }
}

#[test]
fn every_flag_is_a_variable_too() {
    let refused = command(["run"]).env("STANCHION_HEALTH_ADDR", "here").output();
    let (line, code) = failure(&refused.unwrap());
    assert!(line.contains("--health-addr"), "{line}");
    assert_eq!(code, Some(2));
}

#[test]
fn a_connection_string_is_never_repeated() {
    let scratch = Scratch::new("stanchion-url-").unwrap();
    let file = scratch.path().join("url");
    for url in [
        format!("postgres://admin:{SECRET}@/app"),
        format!("postgres://admin:{SECRET}@host:port/app"),
        format!("mysql://admin:{SECRET}@host/app"),
        format!("host=h user=u password={SECRET} colour={SECRET}"),
    ] {
        std::fs::write(&file, &url).unwrap();
        let by_file = command(["run", "--postgres-url-file"]).arg(&file).output();
        let by_argument = command(["run", "--postgres-url", &url]).output();
        let by_variable = command(["run"]).env("STANCHION_POSTGRES_URL", &url).output();
        for output in [by_file, by_argument, by_variable] {
            let (line, code) = failure(&output.unwrap());
            assert!(!line.contains(SECRET), "{line}");
            assert_eq!(code, Some(2), "{line}");
        }
    }
    let url = format!("postgres://admin:{SECRET}@host/app");
    let help = command(["run", "--help"])
        .env("STANCHION_POSTGRES_URL", url)
        .output();
    let help = text(&help.unwrap().stdout);
    assert!(help.contains("STANCHION_POSTGRES_URL") && !help.contains(SECRET));
}

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(["completion", shell]);
        assert!(
            script.contains("doctor") && script.contains("status"),
            "{shell}: {script}"
        );
    }
}
