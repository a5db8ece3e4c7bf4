//! The keys of the Secret `<project>-jwt`. The first four are as old as the operator that it was first made by.

#![allow(missing_docs)]

use crate::database::Login;

pub const JWT_SECRET: &str = "jwt-secret";
pub const ANON: &str = "anon-key";
pub const SERVICE: &str = "service-role-key";
pub const META_CRYPTO: &str = "pg-meta-crypto-key";

/// The key pair that signs.
pub const SIGNING: &str = "signing-key";
/// Auth's list of keys.
pub const JWT_KEYS: &str = "jwt-keys";
/// Everybody else's set of keys.
pub const JWKS: &str = "jwks";
pub const ANON_ASYMMETRIC: &str = "anon-key-asymmetric";
pub const SERVICE_ASYMMETRIC: &str = "service-role-key-asymmetric";
pub const PUBLISHABLE: &str = "publishable-key";
pub const SECRET: &str = "secret-key";

pub const REALTIME_ENCRYPTION: &str = "realtime-db-enc-key";
/// The same for the cipher that later versions of Realtime write with.
pub const REALTIME_ENCRYPTION_GCM: &str = "realtime-db-enc-key-gcm";
pub const SECRET_KEY_BASE: &str = "secret-key-base";
pub const DASHBOARD_USERNAME: &str = "dashboard-username";
pub const DASHBOARD_PASSWORD: &str = "dashboard-password";
pub const S3_PROTOCOL_ID: &str = "s3-protocol-access-key-id";
pub const S3_PROTOCOL_SECRET: &str = "s3-protocol-access-key-secret";

/// Under which the pooler keeps the passwords of its tenants.
pub const VAULT: &str = "vault-enc-key";
/// What a pod of Realtime, of the pooler or of analytics knows others of its kind by.
pub const REALTIME_COOKIE: &str = "realtime-cookie";
pub const POOLER_COOKIE: &str = "pooler-cookie";
pub const ANALYTICS_COOKIE: &str = "analytics-cookie";
/// Who may write logs, and who may also read them and change what is kept.
pub const LOGS_PUBLIC: &str = "logflare-public-access-token";
pub const LOGS_PRIVATE: &str = "logflare-private-access-token";

/// Under which the values that a pod uses are hashed, so that the hash in its annotations tells nothing.
pub const MARK: &str = "mark-key";

/// What Storage signs URLs with, and what it verifies with: everybody else's set, and that key before the secrets.
pub const STORAGE_URL_SIGNING: &str = "storage-url-signing-key";
pub const STORAGE_JWKS: &str = "storage-jwks";

/// What was published and is not used yet.
pub const NEXT_SIGNING: &str = "signing-key-next";
pub const NEXT_SECRET: &str = "jwt-secret-next";
pub const NEXT_ANON: &str = "anon-key-next";
pub const NEXT_SERVICE: &str = "service-role-key-next";
pub const NEXT_PUBLISHABLE: &str = "publishable-key-next";
pub const NEXT_SECRET_KEY: &str = "secret-key-next";
/// Since when.
pub const PUBLISHED_AT: &str = "published-at";

/// What was replaced and is still accepted.
pub const PREVIOUS_SECRET: &str = "jwt-secret-previous";
pub const PREVIOUS_PUBLIC: &str = "signing-key-previous";
pub const PREVIOUS_ANON: &str = "anon-key-previous";
pub const PREVIOUS_SERVICE: &str = "service-role-key-previous";
pub const PREVIOUS_PUBLISHABLE: &str = "publishable-key-previous";
pub const PREVIOUS_SECRET_KEY: &str = "secret-key-previous";
/// Until when; without it, for ever.
pub const PREVIOUS_UNTIL: &str = "previous-until";
/// The request that was acted on last, and when.
pub const ROTATION_REQUEST: &str = "rotation-request";
pub const ROTATED_AT: &str = "rotated-at";

/// Where the password of a login is.
pub const fn password(login: Login) -> &'static str {
    match login {
        Login::Rest => "database-password-rest",
        Login::Auth => "database-password-auth",
        Login::Storage => "database-password-storage",
        Login::Realtime => "database-password-realtime",
        // Studio logs in as both and knows one password.
        Login::Meta | Login::ReadOnly => "database-password-meta",
        Login::Functions => "database-password-functions",
        Login::Analytics => "database-password-analytics",
        Login::Pooler => "database-password-pooler",
        Login::PoolerAuth => "database-password-pooler-auth",
    }
}
