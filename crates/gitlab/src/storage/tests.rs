use k8s_openapi::ByteString;
use proptest::prelude::*;
use secrecy::ExposeSecret;
use serde_json::Value;

use super::*;
use crate::secret_keys::tests::secret;

/// The contents of a complete Secret.
pub(crate) const COMPLETE: [(&str, &str); 15] = [
    ("accessKey", "AKIDEXAMPLE"),
    ("secretKey", "wJalr/XUtnFEMI+K7MDENG"),
    ("endpoint", "https://s3.example.com:9000"),
    ("region", "eu-central-3"),
    ("bucket.registry", "shop-registry"),
    ("bucket.lfs", "shop-lfs"),
    ("bucket.artifacts", "shop-artifacts"),
    ("bucket.uploads", "shop-uploads"),
    ("bucket.packages", "shop-packages"),
    ("bucket.mr-diffs", "shop-mr-diffs"),
    ("bucket.terraform", "shop-terraform"),
    ("bucket.ci-secure-files", "shop-ci-secure-files"),
    ("bucket.dependency-proxy", "shop-dependency-proxy"),
    ("bucket.backups", "shop-backups"),
    ("bucket.pages", "shop-pages"),
];

/// Everything is on.
pub(crate) const ALL: Parts = Parts {
    registry: true,
    pages: true,
    backups: true,
};

pub(crate) fn complete(changes: &[(&str, &str)]) -> Secret {
    secret("s3", &[&COMPLETE[..], changes].concat())
}

fn without(keys: &[&str]) -> Secret {
    let mut secret = complete(&[]);
    secret
        .data
        .as_mut()
        .unwrap()
        .retain(|key, _| !keys.contains(&key.as_str()));
    secret
}

fn text(which: Derived, changes: &[(&str, &str)]) -> String {
    let buckets = Buckets::read(&complete(changes), ALL).unwrap();
    which.text("shop", &buckets).unwrap().expose_secret().to_owned()
}

#[test]
fn a_complete_secret_names_every_bucket() {
    let keys = COMPLETE.iter().filter_map(|(key, _)| key.strip_prefix("bucket."));
    assert_eq!(keys.collect::<Vec<_>>(), Buckets::NAMES);
}

#[test]
fn each_part_gets_its_own_format() {
    let described =
        |which: Derived| format!("# {}: {}\n{}", which.name("shop"), which.key(), text(which, &[]));
    insta::assert_snapshot!(Derived::ALL.map(described).join("\n"), @"
    # shop-gitlab-registry-storage: config
    s3:
      bucket: 'shop-registry'
      accesskey: 'AKIDEXAMPLE'
      secretkey: 'wJalr/XUtnFEMI+K7MDENG'
      region: 'eu-central-3'
      regionendpoint: 'https://s3.example.com:9000'
      v4auth: true
      pathstyle: true

    # shop-gitlab-rails-storage: connection
    provider: 'AWS'
    region: 'eu-central-3'
    aws_access_key_id: 'AKIDEXAMPLE'
    aws_secret_access_key: 'wJalr/XUtnFEMI+K7MDENG'
    aws_signature_version: 4
    endpoint: 'https://s3.example.com:9000'
    path_style: true

    # shop-gitlab-backup-storage: config
    [default]
    access_key = AKIDEXAMPLE
    secret_key = wJalr/XUtnFEMI+K7MDENG
    bucket_location = eu-central-3
    host_base = s3.example.com:9000
    host_bucket = s3.example.com:9000
    use_https = True
    multipart_chunk_size_mb = 128
    ");
}

#[test]
fn every_key_is_needed_and_all_that_lack_are_named() {
    for (key, _) in COMPLETE {
        for lacking in [without(&[key]), complete(&[(key, " \n")])] {
            let error = Buckets::read(&lacking, ALL).unwrap_err();
            assert_eq!((error.missing, error.wrong), (vec![key], vec![]));
        }
    }
    let nothing = Buckets::read(&Secret::default(), ALL).unwrap_err();
    assert_eq!((nothing.missing.len(), nothing.wrong.len()), (15, 0));
    insta::assert_snapshot!(
        Buckets::read(&complete(&[("bucket.lfs", ""), ("region", "")]), ALL).unwrap_err(),
        @"Secret s3: it lacks region, bucket.lfs"
    );
}

#[test]
fn backups_are_restored_over_their_own_bucket_unless_there_is_another() {
    let tmp = |secret: &Secret| Buckets::read(secret, ALL).unwrap().tmp;
    assert_eq!(tmp(&complete(&[])).as_deref(), Some("shop-backups"));
    let other = complete(&[("bucket.tmp", "shop-tmp")]);
    assert_eq!(tmp(&other).as_deref(), Some("shop-tmp"));
}

#[test]
fn a_line_break_at_the_end_is_not_part_of_a_value() {
    let text = text(
        Derived::Backup,
        &[("accessKey", "AKID\n"), ("endpoint", "http://minio:9000/\r\n")],
    );
    assert!(text.contains("access_key = AKID\n"), "{text}");
    assert!(
        text.contains("host_base = minio:9000\n") && text.contains("use_https = False\n"),
        "{text}"
    );
}

#[test]
fn what_a_part_could_not_read_is_refused_and_not_shown() {
    for (key, value, why) in [
        ("secretKey", "a\nuse_https = False", LINE),
        ("secretKey", "$HOME", LINE),
        ("accessKey", "a\u{85}b", LINE),
        ("region", "a\rb", LINE),
        ("endpoint", "https://s3.example.com/a/path", ENDPOINT),
    ] {
        let error = Buckets::read(&complete(&[(key, value)]), ALL).unwrap_err();
        assert!(error.missing.is_empty(), "{error}");
        assert_eq!(error.wrong, [(key, why)]);
        assert!(!error.to_string().contains(value));
    }
    let mut bytes = complete(&[]);
    let data = bytes.data.as_mut().unwrap();
    data.insert("bucket.tmp".into(), ByteString(vec![0xff]));
    let error = Buckets::read(&bytes, ALL).unwrap_err();
    assert_eq!(error.wrong, [("bucket.tmp", "text")]);
}

#[test]
fn no_credential_is_shown_by_debug() {
    let shown = format!("{:?}", Buckets::read(&complete(&[]), ALL).unwrap());
    assert!(
        shown.contains("shop-lfs") && !shown.contains("AKIDEXAMPLE") && !shown.contains("wJalr"),
        "{shown}"
    );
}

/// Parses like s3cmd: the rest of the line, without surrounding white space, and without a pair of quotes.
fn s3cmd_reads(text: &str, key: &str) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{key} =")))?
        .trim();
    let unquoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    Some(unquoted.unwrap_or(value).to_owned())
}

proptest! {
    #[test]
    fn strange_values_reach_every_reader_as_they_are(
        access in "[^\\p{Cc}\\p{Z}$][^\\p{Cc}]{0,20}[^\\p{Cc}\\p{Z}]",
        secret in prop::sample::select(vec![
            "no", "1e3", "0123", "1:30", "2026-01-01", "~", "null", "a: b", "- a", "#x", "a #b", "%s", "{{a}}", "'", "\"", "\"a\"",
            "'a'", "\\", "a\\n", "&a", "*a", "!a", "|", ">", "@a", "`a`", "a\"b'c", "[default]", "ключ", "🔑",
        ]),
        bucket in "[^\\p{Z}\\p{Cc}][^\u{fffe}]{0,12}[^\\p{Z}\\p{Cc}]",
    ) {
        let changes = [("accessKey", access.as_str()), ("secretKey", secret), ("bucket.registry", &bucket)];
        let buckets = Buckets::read(&complete(&changes), ALL).unwrap();
        let of = |which: Derived| which.text("shop", &buckets).unwrap().expose_secret().to_owned();
        let yaml = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();

        let rails = yaml(&of(Derived::Rails));
        prop_assert_eq!(&rails["aws_access_key_id"], access.as_str());
        prop_assert_eq!(&rails["aws_secret_access_key"], secret);

        let registry = of(Derived::Registry);
        prop_assert_eq!(registry.lines().count(), 8, "a value was broken: {}", registry);
        let registry = yaml(&registry);
        prop_assert_eq!(&registry["s3"]["accesskey"], access.as_str());
        prop_assert_eq!(&registry["s3"]["secretkey"], secret);
        prop_assert_eq!(&registry["s3"]["bucket"], bucket.as_str());

        let ini = of(Derived::Backup);
        prop_assert_eq!(s3cmd_reads(&ini, "access_key"), Some(access));
        prop_assert_eq!(s3cmd_reads(&ini, "secret_key"), Some(secret.to_owned()));
    }
}

#[test]
fn what_is_off_needs_no_bucket() {
    let some = without(&["bucket.pages", "bucket.registry", "bucket.backups"]);
    let off = Parts {
        registry: false,
        pages: false,
        backups: false,
    };
    let buckets = Buckets::read(&some, off).unwrap();
    assert_eq!((buckets.registry.clone(), buckets.pages.clone()), (None, None));
    assert_eq!((buckets.backups.clone(), buckets.tmp.clone()), (None, None));
    let text = Derived::Registry.text("shop", &buckets).unwrap();
    assert!(!text.expose_secret().contains("bucket"));
    let missing = Buckets::read(&some, ALL).unwrap_err();
    assert_eq!(
        missing.missing,
        ["bucket.backups", "bucket.registry", "bucket.pages"]
    );
    let named = Buckets::read(&complete(&[]), off).unwrap();
    assert_eq!(
        named.backups.as_deref(),
        Some("shop-backups"),
        "for backups by hand"
    );
}
