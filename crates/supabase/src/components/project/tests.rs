//! A project to render, for all tests of components, and what is said of it as a whole.

use jiff::{SignedDuration, Timestamp};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::*;
use crate::keys;

/// A project to render.
pub(crate) struct Bed {
    pub(crate) spec: SupabaseProjectSpec,
    pub(crate) secrets: Secrets,
    database: Address,
    bucket: Bucket,
    logins: Names,
    pub(crate) config: ConfigMaps,
}

impl Bed {
    pub(crate) fn project(&self) -> Project<'_> {
        Project {
            name: "shop",
            spec: &self.spec,
            database: &self.database,
            logins: &self.logins,
            bucket: &self.bucket,
            secrets: &self.secrets,
            config: &self.config,
        }
    }
}

pub(crate) fn bed(change: impl FnOnce(&mut Value)) -> Bed {
    let mut spec = json!({
        "projectId": "shop",
        "database": {"secretRef": {"name": "db"}},
        "storage": {"secretRef": {"name": "s3"}},
    });
    change(&mut spec);
    let generated: Vec<_> = super::super::ALL.iter().flat_map(|row| row.keys).collect();
    let request = keys::Request {
        own_secret: None,
        rotate: None,
        grace: SignedDuration::ZERO,
        logins: &Login::ALL,
        generated: &generated,
    };
    let keys = keys::complete(
        Keys::default(),
        &request,
        &mut StdRng::seed_from_u64(7),
        Timestamp::UNIX_EPOCH,
    );
    Bed {
        spec: serde_json::from_value(spec).unwrap(),
        secrets: Secrets {
            keys: keys.unwrap(),
            others: BTreeMap::new(),
        },
        database: Address {
            host: "pg.example.com".into(),
            port: 5432,
            name: "shop db".into(),
        },
        bucket: Bucket {
            secret: "s3".into(),
            endpoint: "http://minio:9000".into(),
            region: "eu-west-1".into(),
            name: "files".into(),
        },
        logins: Names::default(),
        config: ConfigMaps::new(),
    }
}

#[test]
fn the_public_url_is_stated_or_follows_from_what_leads_here() {
    let url = |change: fn(&mut Value)| bed(change).project().public_url();
    assert_eq!(url(|_| {}), "http://shop-kong:8000");
    assert_eq!(
        url(|spec| spec["studio"] = json!({"publicUrl": "https://a.example/"})),
        "https://a.example"
    );
    assert_eq!(
        url(|spec| spec["ingress"] = json!({"enabled": true, "host": "b.example", "tlsSecretName": "t"})),
        "https://b.example"
    );
    assert_eq!(
        url(|spec| spec["ingress"] = json!({"enabled": false, "host": "b.example"})),
        "http://shop-kong:8000"
    );
    assert_eq!(
        url(|spec| spec["gateway"] =
            json!({"parentRefs": [{"name": "g"}], "hostnames": ["*.x", "c.example"], "tls": false})),
        "http://c.example"
    );
}

#[test]
fn a_database_may_have_any_name() {
    let url = bed(|_| {})
        .project()
        .database_url(Login::Auth, &[("sslmode", "require")]);
    assert_eq!(
        url,
        "postgres://supabase%5Fauth%5Fadmin:$(DB_PASSWORD)@pg.example.com:5432/shop%20db?sslmode=require"
    );
}

#[test]
fn a_mark_changes_with_the_value_and_only_with_it() {
    let (one, mut two) = (bed(|_| {}), bed(|_| {}));
    let used = [
        ("shop-jwt".to_owned(), keys::names::JWT_SECRET.to_owned()),
        ("s3".into(), "accessKeyId".into()),
    ];
    let other = [("shop-jwt".to_owned(), keys::names::ANON.to_owned())];
    two.secrets.keys = one.secrets.keys.clone();
    assert_eq!(one.project().mark(&used), two.project().mark(&used));
    two.secrets.others.insert(
        "s3".into(),
        BTreeMap::from([("accessKeyId".into(), "new".into())]),
    );
    assert_ne!(one.project().mark(&used), two.project().mark(&used));
    assert_eq!(one.project().mark(&other), two.project().mark(&other));
}
