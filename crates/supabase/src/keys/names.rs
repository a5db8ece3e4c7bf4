//! The keys of the Secret `<project>-jwt`. The first four are those of the original operator.

#![allow(missing_docs)]

use crate::database::Login;

pub(crate) const JWT_SECRET: &str = "jwt-secret";
pub(crate) const ANON: &str = "anon-key";
pub(crate) const SERVICE: &str = "service-role-key";
pub(crate) const META_CRYPTO: &str = "pg-meta-crypto-key";

/// The signing key pair.
pub(crate) const SIGNING: &str = "signing-key";
/// Auth's list of keys.
pub(crate) const JWT_KEYS: &str = "jwt-keys";
/// The other components' key set.
pub(crate) const JWKS: &str = "jwks";
pub(crate) const ANON_ASYMMETRIC: &str = "anon-key-asymmetric";
pub(crate) const SERVICE_ASYMMETRIC: &str = "service-role-key-asymmetric";
pub(crate) const PUBLISHABLE: &str = "publishable-key";
pub(crate) const SECRET: &str = "secret-key";

pub(crate) const REALTIME_ENCRYPTION: &str = "realtime-db-enc-key";
/// The same for the cipher of later versions of Realtime.
pub(crate) const REALTIME_ENCRYPTION_GCM: &str = "realtime-db-enc-key-gcm";
pub(crate) const SECRET_KEY_BASE: &str = "secret-key-base";
pub(crate) const DASHBOARD_USERNAME: &str = "dashboard-username";
pub(crate) const DASHBOARD_PASSWORD: &str = "dashboard-password";
pub(crate) const S3_PROTOCOL_ID: &str = "s3-protocol-access-key-id";
pub(crate) const S3_PROTOCOL_SECRET: &str = "s3-protocol-access-key-secret";

/// Encrypts the passwords of the pooler's tenants.
pub(crate) const VAULT: &str = "vault-enc-key";
/// The Erlang cookie of Realtime's, the pooler's or analytics' nodes.
pub(crate) const REALTIME_COOKIE: &str = "realtime-cookie";
pub(crate) const POOLER_COOKIE: &str = "pooler-cookie";
pub(crate) const ANALYTICS_COOKIE: &str = "analytics-cookie";
/// Tokens to write logs, and to read and manage them.
pub(crate) const LOGS_PUBLIC: &str = "logflare-public-access-token";
pub(crate) const LOGS_PRIVATE: &str = "logflare-private-access-token";

/// Key of the hashes in pod annotations, so that they reveal nothing.
pub(crate) const MARK: &str = "mark-key";

/// The key that signs Storage's URLs, and Storage's key set: the common set, with that key before the secrets.
pub(crate) const STORAGE_URL_SIGNING: &str = "storage-url-signing-key";
pub(crate) const STORAGE_JWKS: &str = "storage-jwks";

/// Keys that are published and not used yet.
pub(crate) const NEXT_SIGNING: &str = "signing-key-next";
pub(crate) const NEXT_SECRET: &str = "jwt-secret-next";
pub(crate) const NEXT_ANON: &str = "anon-key-next";
pub(crate) const NEXT_SERVICE: &str = "service-role-key-next";
pub(crate) const NEXT_PUBLISHABLE: &str = "publishable-key-next";
pub(crate) const NEXT_SECRET_KEY: &str = "secret-key-next";
/// Since when.
pub(crate) const PUBLISHED_AT: &str = "published-at";

/// Replaced keys that are still accepted.
pub(crate) const PREVIOUS_SECRET: &str = "jwt-secret-previous";
pub(crate) const PREVIOUS_PUBLIC: &str = "signing-key-previous";
pub(crate) const PREVIOUS_ANON: &str = "anon-key-previous";
pub(crate) const PREVIOUS_SERVICE: &str = "service-role-key-previous";
pub(crate) const PREVIOUS_PUBLISHABLE: &str = "publishable-key-previous";
pub(crate) const PREVIOUS_SECRET_KEY: &str = "secret-key-previous";
/// Until when; without it, forever.
pub(crate) const PREVIOUS_UNTIL: &str = "previous-until";
/// The last request that was fulfilled, and when.
pub(crate) const ROTATION_REQUEST: &str = "rotation-request";
pub(crate) const ROTATED_AT: &str = "rotated-at";

/// The Secret key of a login's password.
pub(crate) const fn password(login: Login) -> &'static str {
    match login {
        Login::Rest => "database-password-rest",
        Login::Auth => "database-password-auth",
        Login::Storage => "database-password-storage",
        Login::Realtime => "database-password-realtime",
        // Studio logs in as both with one password.
        Login::Meta | Login::ReadOnly => "database-password-meta",
        Login::Functions => "database-password-functions",
        Login::Analytics => "database-password-analytics",
        Login::Pooler => "database-password-pooler",
        Login::PoolerAuth => "database-password-pooler-auth",
    }
}
