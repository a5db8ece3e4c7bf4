//! A project for the tests of components, and tests of the project itself.

use jiff::{SignedDuration, Timestamp};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::super::SecretHasher;
use super::*;
use crate::keys::{self, Keys};

/// A project for tests.
pub(crate) struct ProjectFixture {
    pub(crate) spec: SupabaseProjectSpec,
    pub(crate) keys: Keys,
    secrets: SecretDigests,
    database: Address,
    bucket: Bucket,
    logins: Names,
    pub(crate) config: ConfigMaps,
}

impl ProjectFixture {
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

    /// Adds Secrets of the user with these names and keys.
    pub(crate) fn seal(&mut self, others: &[(&str, &[&str])]) {
        let mut hasher = SecretHasher::new(None);
        hasher.add("shop-jwt", self.keys.iter());
        let value = "x".into();
        for (name, keys) in others {
            hasher.add(name, keys.iter().map(|key| (*key, &value)));
        }
        self.secrets = hasher.finish();
    }
}

pub(crate) fn fixture(change: impl FnOnce(&mut Value)) -> ProjectFixture {
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
        published: false,
        logins: &Login::ALL,
        generated: &generated,
    };
    let keys = keys::complete(
        Keys::default(),
        &request,
        &mut StdRng::seed_from_u64(7),
        Timestamp::UNIX_EPOCH,
    );
    let mut fixture = ProjectFixture {
        spec: serde_json::from_value(spec).unwrap(),
        keys: keys.unwrap(),
        secrets: SecretDigests::default(),
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
    };
    fixture.seal(&[]);
    fixture
}

#[test]
fn the_public_url_is_stated_or_follows_from_what_leads_here() {
    let url = |change: fn(&mut Value)| fixture(change).project().public_url();
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
    let url = fixture(|_| {})
        .project()
        .database_url(Login::Auth, &[("sslmode", "require")]);
    assert_eq!(
        url,
        "postgres://supabase%5Fauth%5Fadmin:$(DB_PASSWORD)@pg.example.com:5432/shop%20db?sslmode=require"
    );
}
