//! What is kept of the objects that a pass reads, and what is refused.

use std::collections::BTreeSet;

use k8s_openapi::ByteString;

use super::*;

fn secret(values: &[(&str, usize)]) -> Secret {
    let data = values
        .iter()
        .map(|(key, size)| ((*key).to_owned(), ByteString(vec![b'x'; *size])));
    Secret {
        data: Some(data.collect()),
        ..Secret::default()
    }
}

fn extra(name: &str, key: &str) -> ToRead {
    let keys = BTreeSet::from([key.to_owned()]);
    ToRead {
        secret_keys: BTreeMap::from([(name.to_owned(), keys.clone())]),
        config_keys: BTreeMap::from([(name.to_owned(), keys)]),
        ..ToRead::default()
    }
}

/// A namespace with many large Secrets must not fill the memory that all namespaces share.
#[test]
fn of_a_secret_that_only_pods_read_a_digest_of_the_named_key_stays() {
    let mut fetched = Fetched::default();
    let large = secret(&[("token", 400_000), ("other", 600_000)]);
    fetched
        .add_secret("large", large, &extra("large", "token"))
        .unwrap();
    assert!(fetched.secret("large").is_none());
    let kept = &fetched.digests["large"];
    let kept: Vec<(&str, usize)> = kept
        .iter()
        .map(|(key, value)| (key.as_str(), value.expose_secret().len()))
        .collect();
    assert_eq!(kept, [("token", 64)]);
    let mut other = Fetched::default();
    let changed = secret(&[("token", 400_001)]);
    other
        .add_secret("large", changed, &extra("large", "token"))
        .unwrap();
    assert_ne!(
        fetched.digests["large"]["token"].expose_secret(),
        other.digests["large"]["token"].expose_secret()
    );
}

#[test]
fn of_a_config_map_that_only_pods_read_the_named_key_stays() {
    let mut fetched = Fetched::default();
    let data = [("level", "info"), ("other", "x")].map(|(key, value)| (key.into(), value.into()));
    let map = ConfigMap {
        data: Some(data.into()),
        ..ConfigMap::default()
    };
    fetched
        .add_config_map("settings", map, &extra("settings", "level"))
        .unwrap();
    let kept: Vec<&str> = fetched.config["settings"].keys().map(String::as_str).collect();
    assert_eq!(kept, ["level"]);
}

#[test]
fn a_pass_reads_a_bounded_number_of_bytes() {
    let mut fetched = Fetched::default();
    let add = |fetched: &mut Fetched, name: String| {
        let wanted = extra(&name, "token");
        fetched.add_secret(&name, secret(&[("token", 1_000_000)]), &wanted)
    };
    let results: Vec<_> = (0..9)
        .map(|number| add(&mut fetched, format!("s{number}")))
        .collect();
    assert!(results.iter().take(8).all(Result::is_ok));
    let problem = results.last().unwrap().as_ref().unwrap_err();
    assert!(problem.message.contains("more than 8 MiB"), "{problem}");
}

#[test]
fn a_value_that_pods_read_does_not_end_in_a_line_break() {
    let mut fetched = Fetched::default();
    let data = [
        ("accessKeyId", "id"),
        ("secretAccessKey", "key\n"),
        ("region", "eu\n"),
    ]
    .map(|(key, value)| (key.to_owned(), ByteString(value.into())));
    let storage = Secret {
        data: Some(data.into()),
        ..Secret::default()
    };
    fetched.secrets.insert("s3".into(), storage);
    let raw = &["accessKeyId", "secretAccessKey"];
    let problem = fetched.raw_values("s3", "storage", &[], raw).unwrap_err();
    assert!(
        problem
            .message
            .starts_with("storage secret: the value of 'secretAccessKey' ends in a line break"),
        "{problem}"
    );
    assert!(fetched.raw_values("s3", "storage", &[], &["accessKeyId"]).is_ok());
}
