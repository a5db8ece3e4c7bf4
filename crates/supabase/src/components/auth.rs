//! Auth: sign-up, login and tokens. It migrates its own schema, as its own role.

use stanchion_api::supabase::{Auth, SecretReference, image};

use super::kong::routes::{Guard, route};
use super::{Component, Environment, Extras, Needs, Port, Probes, Project, Resources};
use crate::database::Login;
use crate::keys::names as key;

/// The path of links in mails, below that of the public URL. Auth resolves it against `API_EXTERNAL_URL`, whose own path
/// it replaces.
const VERIFY: &str = "/auth/v1/verify";

pub(super) const COMPONENT: Component = Component {
    name: "auth",
    field: "auth",
    label: "authentication",
    condition: "AuthReady",
    options: |spec| Some(&spec.auth.options),
    image: image::AUTH,
    ports: &[Port::service("http", 9999)],
    open: false,
    resources: Resources::new(("64Mi", "50m"), ("128Mi", "100m")),
    user: 1000,
    probes: |_| Probes::http("http", "/health", 120),
    logins: &[Login::Auth],
    keys: &[],
    routes: &[
        route("auth-v1-open", "/verify", "/auth/v1/verify", Guard::Open),
        route(
            "auth-v1-open-callback",
            "/callback",
            "/auth/v1/callback",
            Guard::Open,
        ),
        route(
            "auth-v1-open-authorize",
            "/authorize",
            "/auth/v1/authorize",
            Guard::Open,
        ),
        route(
            "auth-v1-open-jwks",
            "/.well-known/jwks.json",
            "/auth/v1/.well-known/jwks.json",
            Guard::Open,
        ),
        route(
            "auth-v1-open-sso-acs",
            "/sso/saml/acs",
            "/auth/v1/sso/saml/acs",
            Guard::Open,
        ),
        route(
            "auth-v1-open-sso-metadata",
            "/sso/saml/metadata",
            "/auth/v1/sso/saml/metadata",
            Guard::Open,
        ),
        route(
            "well-known-oauth",
            "/.well-known/oauth-authorization-server",
            "/.well-known/oauth-authorization-server",
            Guard::Open,
        ),
        route("auth-v1", "/", "/auth/v1/", Guard::Key),
    ],
    needs: |_| Needs::default(),
    environment,
    extras: |_| Extras::default(),
};

fn environment(project: &Project<'_>, env: &mut Environment) {
    let (keys, auth) = (project.key_secret(), &project.spec.auth);
    let public = project.public_url();
    let site = auth.site_url.clone().unwrap_or_else(|| public.clone());
    env.set("API_EXTERNAL_URL", format!("{public}/auth/v1"));
    env.set("GOTRUE_SITE_URL", site);
    env.set("GOTRUE_URI_ALLOW_LIST", auth.redirect_urls.join(","));
    env.set_all(&[
        ("GOTRUE_API_HOST", "0.0.0.0"),
        ("GOTRUE_API_PORT", "9999"),
        ("GOTRUE_DB_DRIVER", "postgres"),
    ]);
    env.secret("DB_PASSWORD", &keys, key::password(Login::Auth));
    let ca = project.ca_file();
    let mut parameters = vec![("sslmode", project.ssl_mode())];
    parameters.extend(ca.as_deref().map(|file| ("sslrootcert", file)));
    env.expanded(
        "GOTRUE_DB_DATABASE_URL",
        project.database_url(Login::Auth, &parameters),
    );
    env.set(
        "GOTRUE_DB_MAX_POOL_SIZE",
        project.spec.database.max_connections.to_string(),
    );
    env.secret("GOTRUE_JWT_SECRET", &keys, key::JWT_SECRET);
    env.secret("GOTRUE_JWT_KEYS", &keys, key::JWT_KEYS);
    env.set("GOTRUE_JWT_EXP", project.token_seconds().to_string());
    env.set("GOTRUE_JWT_ISSUER", format!("{public}/auth/v1"));
    env.set_all(&[
        ("GOTRUE_JWT_ADMIN_ROLES", "service_role"),
        ("GOTRUE_JWT_AUD", "authenticated"),
        ("GOTRUE_JWT_DEFAULT_GROUP_NAME", "authenticated"),
        ("GOTRUE_DISABLE_SIGNUP", "false"),
        ("GOTRUE_EXTERNAL_EMAIL_ENABLED", "true"),
        ("GOTRUE_EXTERNAL_ANONYMOUS_USERS_ENABLED", "false"),
        ("GOTRUE_EXTERNAL_PHONE_ENABLED", "false"),
    ]);
    let verify = format!("{}{VERIFY}", path(&public));
    env.set_all(&[
        ("GOTRUE_MAILER_URLPATHS_INVITE", &verify),
        ("GOTRUE_MAILER_URLPATHS_CONFIRMATION", &verify),
        ("GOTRUE_MAILER_URLPATHS_RECOVERY", &verify),
        ("GOTRUE_MAILER_URLPATHS_EMAIL_CHANGE", &verify),
    ]);
    mail(auth, project, env);
    providers(auth, project, env, &public);
}

/// Without a mail server nobody can confirm an address, so addresses count as confirmed.
fn mail(auth: &Auth, project: &Project<'_>, env: &mut Environment) {
    let Some(secret) = name(auth.smtp_secret_ref.as_ref()) else {
        env.set("GOTRUE_MAILER_AUTOCONFIRM", "true");
        return;
    };
    env.set("GOTRUE_MAILER_AUTOCONFIRM", "false");
    for (variable, key) in [
        ("GOTRUE_SMTP_HOST", "host"),
        ("GOTRUE_SMTP_PORT", "port"),
        ("GOTRUE_SMTP_USER", "username"),
        ("GOTRUE_SMTP_PASS", "password"),
        ("GOTRUE_SMTP_ADMIN_EMAIL", "from"),
    ] {
        env.secret(variable, secret, key);
    }
    if project.has(secret, "senderName") {
        env.secret("GOTRUE_SMTP_SENDER_NAME", secret, "senderName");
    }
}

/// The suffix of a provider's client id.
pub(crate) const CLIENT_ID: &str = "-client-id";
/// The suffix of a provider's client secret.
pub(crate) const CLIENT_SECRET: &str = "-secret";

/// Every provider that has a client id in the Secret.
fn providers(auth: &Auth, project: &Project<'_>, env: &mut Environment, public: &str) {
    let Some(secret) = name(auth.oauth_secret_ref.as_ref()) else {
        return;
    };
    let names: Vec<String> = project
        .secrets
        .keys_of(secret)
        .filter_map(|key| key.strip_suffix(CLIENT_ID).map(str::to_owned))
        .collect();
    for name in names {
        let variable = |what: &str| {
            let provider = name.to_ascii_uppercase().replace('-', "_");
            format!("GOTRUE_EXTERNAL_{provider}_{what}")
        };
        env.set(&variable("ENABLED"), "true");
        env.secret(&variable("CLIENT_ID"), secret, &format!("{name}{CLIENT_ID}"));
        env.secret(&variable("SECRET"), secret, &format!("{name}{CLIENT_SECRET}"));
        env.set(&variable("REDIRECT_URI"), format!("{public}/auth/v1/callback"));
        let url = format!("{name}-url");
        if project.has(secret, &url) {
            env.secret(&variable("URL"), secret, &url);
        }
    }
}

/// The path of a URL without a trailing slash, and what follows it; empty if it has none.
fn path(url: &str) -> &str {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    rest.find('/')
        .and_then(|start| rest.get(start..))
        .unwrap_or_default()
}

fn name(reference: Option<&SecretReference>) -> Option<&str> {
    reference?.name.as_deref().filter(|name| !name.is_empty())
}
