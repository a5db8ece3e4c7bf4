//! Review artifacts, tokens and requests to a cluster.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::on_every_version;
use crate::support::pgroles;

const SECRETS: [&str; 3] = ["PW_VARIABLE", "a private comment", "a private setting"];

on_every_version! {
    async fn a_review_shows_what_would_be_done_and_no_values(lab) {
        let manifest = "
            roles:
            - {name: P_r, login: true, password: {from_env: PW_VARIABLE}, comment: a private comment, config: {application_name: a private setting}}
            - {name: P_mighty, superuser: true}";
        let file = lab.file("review.json", "");
        let args = ["--format", "markdown", "--review-out", &file, "--target-label", "staging", "--policy-commit", "abc123", "--executor-role", "deployer", "--no-exit-code"];
        let run = lab.run("diff", manifest, &args).await.exits(0);
        let text = lab.generic(&std::fs::read_to_string(&file).unwrap());
        for secret in SECRETS {
            assert!(!text.contains(secret) && !run.out.contains(secret) && !run.err.contains(secret), "{secret} is shown");
        }
        let review: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(review["schema_version"], "pgroles.review-artifact.v3");
        assert_eq!(review["provenance"]["target_label"], "staging");
        assert_eq!(review["provenance"]["policy"]["commit"], "abc123");
        assert_eq!(review["provenance"]["pg_major_version"], json!(lab.database.server().version().major()));
        assert_eq!(review["context"]["intended_executor"], json!({"role": "deployer"}));
        let kinds: Vec<_> = review["recorded"]["changes"].as_array().unwrap().iter()
            .map(|change| (change["change"]["kind"].as_str().unwrap(), change["priority"].as_str().unwrap())).collect();
        assert_eq!(kinds, [("create_role", "High"), ("create_role", "Review"), ("set_password", "High")]);
        assert_eq!(review["recorded"]["sql_preview"]["sensitive_change_indices"], json!([1, 2]));
        let fingerprint = review["recorded"]["review_fingerprint"].as_str().unwrap();
        assert!(run.out.contains(&format!("`{fingerprint}`")) && run.err.contains(fingerprint));
        assert!(run.out.starts_with("## pgroles review\n") && run.out.contains("**2 high priority**, 1 review"));
    }

    async fn a_fingerprint_is_of_what_is_shown(lab) {
        let file = lab.file("review.json", "");
        let manifest = "roles: [{name: P_r, login: true}]";
        let review = async || {
            let run = lab.run("diff", manifest, &["--review-out", &file]).await.exits(2);
            let review: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            (run.out, review)
        };
        let (sql, first) = review().await;
        assert_eq!(lab.generic(first["recorded"]["sql_preview"]["sql"].as_str().unwrap()), sql);
        let (_, second) = review().await;
        assert_ne!(first["provenance"]["captured_at"], second["provenance"]["captured_at"]);
        let recorded = &first["recorded"];
        assert_eq!(recorded["review_fingerprint"], second["recorded"]["review_fingerprint"]);
        // As pgroles computes it.
        let shown = json!([
            first["schema_version"], first["provenance"]["policy"], first["provenance"]["target_label"],
            first["provenance"]["pg_major_version"], first["context"], first["preflight"], recorded["changes"],
            recorded["phases"], recorded["findings"], recorded["visual"], recorded["sql_preview"], []
        ]);
        let digest = format!("sha256:{:x}", Sha256::digest(shown.to_string()));
        assert_eq!(recorded["review_fingerprint"], json!(digest));
    }

    async fn a_review_says_what_apply_would_refuse(lab) {
        lab.sql("CREATE ROLE P_old; CREATE ROLE P_new; CREATE SCHEMA s AUTHORIZATION P_old; CREATE ROLE P_e LOGIN PASSWORD 'pw-of-e'; CREATE ROLE P_r").await;
        let file = lab.file("review.json", "");
        let status = |check: &str| {
            let review: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            let all = review["preflight"].as_array().unwrap().clone();
            let found = all.into_iter().find(|evidence| evidence["check"] == check).unwrap();
            (found["status"].as_str().unwrap().to_owned(), found["issues"][0]["code"].as_str().map(str::to_owned))
        };
        let manifest = "schemas: [{name: s, owner: P_new}]";
        let adopt = ["--mode", "adopt", "--review-out", &file];
        lab.run("diff", manifest, &adopt).await.exits(2).says("apply would refuse this plan");
        assert_eq!(status("schema_owner_transfer"), ("failed".to_owned(), Some("adopt_schema_owner_transfer".to_owned())));
        lab.run("diff", manifest, &[&adopt[..], &["--allow-schema-owner-transfers"]].concat()).await.exits(2);
        assert_eq!(status("schema_owner_transfer"), ("passed".to_owned(), None));
        // A check without coverage does not claim success.
        assert_eq!(status("executor_authority"), ("unknown".to_owned(), None));
        let url = lab.database.url_of(&lab.text("P_e"), "pw-of-e");
        let defaults = "roles: [{name: P_r}]\ndefault_privileges: [{owner: P_old, schema: s, grant: [{role: P_r, privileges: [SELECT], on_type: table}]}]";
        lab.run_as(&url, "diff", defaults, &["--review-out", &file], &[]).await.exits(2);
        assert_eq!(status("executor_authority"), ("failed".to_owned(), Some("UnsatisfiableDefaultPrivilegeChange".to_owned())));
    }

    async fn a_review_that_cannot_be_written_is_an_error_after_the_plan(lab) {
        let manifest = "roles: [{name: P_r}]";
        let run = lab.run("diff", manifest, &["--review-out", "/no/such/folder/review.json"]).await.exits(1);
        assert!(run.out.contains("CREATE ROLE") && run.err.contains("failed to write review artifact"), "{run:?}");
    }

    async fn statements_are_told_to_who_debugs(lab) {
        let manifest = "roles: [{name: P_r, login: true, password: {from_env: PW}}]";
        let env = [("PW", "not-for-the-log"), ("RUST_LOG", "info,pgroles=debug")];
        lab.run_as(&lab.database.url(), "apply", manifest, &[], &env).await.exits(0)
            .says("executed: ALTER ROLE \"P_r\" PASSWORD '[REDACTED]'").hides("not-for-the-log");
    }
}

#[tokio::test]
async fn a_label_is_no_url() {
    let line = [
        "diff",
        "--database-url",
        "postgres://nobody.invalid:1/x",
        "--review-out",
        "x",
        "--target-label",
        "postgres://u:hunter2@h/d",
    ];
    pgroles(&line, &[])
        .await
        .exits(1)
        .says("not a connection URL")
        .hides("hunter2")
        .hides("connect:");
    pgroles(&["diff", "--database-url", "x", "--target-label", "staging"], &[])
        .await
        .exits(64)
        .says("--review-out");
}

#[tokio::test]
async fn a_token_instead_of_a_password() {
    let line = |url| {
        [
            "generate",
            "--auth",
            "azure-workload-identity",
            "--database-url",
            url,
        ]
    };
    pgroles(&line("postgres://u:secret@h/d"), &[])
        .await
        .exits(1)
        .says("without a password")
        .hides("secret");
    pgroles(&line("postgres://u@h/d"), &[])
        .await
        .exits(1)
        .says("AZURE_TENANT_ID");
    let env = [
        ("AZURE_TENANT_ID", "t"),
        ("AZURE_CLIENT_ID", "c"),
        ("AZURE_FEDERATED_TOKEN_FILE", "/no/such/token"),
    ];
    pgroles(&line("postgres://u@h/d"), &env)
        .await
        .exits(1)
        .says("/no/such/token");
    pgroles(&["validate", "--auth", "azure-workload-identity"], &[])
        .await
        .exits(64);
}

#[tokio::test]
async fn the_operator_is_asked() {
    pgroles(
        &[
            "reconcile",
            "pgr/db",
            "-n",
            "shop",
            "--wait",
            "--timeout",
            "1m30s",
        ],
        &[],
    )
    .await
    .exits(0)
    .says("shop/db wait=true 90s");
    pgroles(&["reconcile", "broken"], &[])
        .await
        .exits(1)
        .says("failed to reconcile broken: ApplyFailed");
    pgroles(&["reconcile", "secret/db"], &[])
        .await
        .exits(64)
        .says("unsupported reconcile resource kind");
}
