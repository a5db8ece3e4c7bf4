//! The values for the fields of the spec that say how GitLab is installed: edition, hosts, mail, backups, placement.

use serde_json::{Value, json};
use stanchion_api::gitlab::Edition;

use super::merge::layered;
use super::{Input, Values};
use crate::login::Mail;

/// The port for implicit TLS, where STARTTLS is not possible.
const ENCRYPTED_PORT: u16 = 465;

/// The parts with pods under the key `gitlab`.
const UNDER_GITLAB: [&str; 12] = [
    "geo-logcursor",
    "gitaly",
    "gitlab-exporter",
    "gitlab-pages",
    "gitlab-shell",
    "kas",
    "mailroom",
    "migrations",
    "praefect",
    "sidekiq",
    "toolbox",
    "webservice",
];

/// The parts with pods at the top level.
const AT_THE_TOP: [&str; 3] = ["registry", "shared-secrets", "upgradeCheck"];

/// The edition, and its license.
pub(super) fn edition(input: &Input<'_>) -> Value {
    let edition = input.spec.edition;
    let license = input
        .spec
        .license_secret
        .as_deref()
        .filter(|secret| !secret.is_empty());
    match (edition, license) {
        (Edition::Ee, Some(secret)) => json!({
            "global": { "edition": edition.name(), "gitlab": { "license": { "secret": secret, "key": "license" } } },
        }),
        _ => json!({ "global": { "edition": edition.name() } }),
    }
}

/// The hosts of GitLab and its parts. A part without a host is not installed: the chart would invent one.
pub(super) fn hosts(input: &Input<'_>) -> Value {
    let domains = &input.spec.domains;
    let parts = [
        ("gitlab", Some(&domains.gitlab)),
        ("registry", domains.registry.as_ref()),
        ("kas", domains.kas.as_ref()),
        ("pages", domains.pages.as_ref()),
    ];
    // Encryption is set once for all hosts: a host's own setting would override what users switch off for all.
    let mut hosts = Values::from_iter([
        ("domain".to_owned(), parent(&domains.gitlab).into()),
        ("https".to_owned(), true.into()),
    ]);
    hosts.extend(
        parts
            .into_iter()
            .filter_map(|(part, host)| Some((part.to_owned(), json!({ "name": host? })))),
    );
    json!({
        "registry": { "enabled": domains.registry.is_some() },
        "global": {
            "hosts": hosts,
            "registry": { "enabled": domains.registry.is_some() },
            "kas": { "enabled": domains.kas.is_some() },
            "pages": { "enabled": domains.pages.is_some() },
        },
    })
}

/// The parent domain of a host, for what the chart creates itself, such as a certificate for `*.example.com`: never a
/// top-level domain.
fn parent(host: &str) -> &str {
    match host.split_once('.') {
        Some((_, parent)) if parent.contains('.') => parent,
        _ => host,
    }
}

/// The mail server.
pub(super) fn mail(input: &Input<'_>) -> Value {
    let Some(mail) = input.mail else {
        return Value::Null;
    };
    let user = mail.username.as_ref().map(|name| json!({ "user_name": name }));
    let password = mail
        .password
        .as_ref()
        .map(|key| json!({ "password": { "secret": key.secret, "key": key.key } }));
    let from = mail.from.as_ref().map(|address| json!({ "from": address }));
    let reply_to = mail
        .reply_to
        .as_ref()
        .map(|address| json!({ "reply_to": address }));
    json!({ "global": {
        "smtp": layered([Some(server(mail)), user, password]),
        "email": layered([from, reply_to]),
    } })
}

fn server(mail: &Mail) -> Value {
    let encrypted = mail.address.port == ENCRYPTED_PORT;
    json!({
        "enabled": true,
        "address": mail.address.host,
        "port": mail.address.port,
        "tls": encrypted,
        "starttls_auto": mail.starttls && !encrypted,
        // The chart's default requires a login.
        "authentication": mail.authentication.as_deref().unwrap_or_default(),
    })
}

/// The backup schedule.
pub(super) fn backups(input: &Input<'_>) -> Value {
    let own = input.spec.backup_schedule.as_ref();
    own.or(input.profile.backup_schedule.as_ref()).map_or(Value::Null, |schedule| {
        json!({ "gitlab": { "toolbox": { "backups": { "cron": { "enabled": true, "schedule": schedule } } } } })
    })
}

/// Placement of the pods on nodes.
///
/// The chart has a global node selector, but no tolerations that all its versions read: each part is configured. A part
/// without tolerations stays pending forever, and if it is a Job, so does the release.
pub(super) fn placement(input: &Input<'_>) -> Value {
    let selector = &input.spec.node_selector;
    let labels = (!selector.is_empty()).then(|| json!({ "global": { "nodeSelector": selector } }));
    let tolerations = (!input.spec.tolerations.is_empty()).then(|| tolerations(input));
    layered([labels, tolerations])
}

fn tolerations(input: &Input<'_>) -> Value {
    let described = |part: &str| (part.to_owned(), json!({ "tolerations": input.spec.tolerations }));
    let storage = input.chart.bundles_backends() && input.buckets.is_none();
    let mut all: Values = AT_THE_TOP
        .into_iter()
        .chain(storage.then_some("minio"))
        .map(described)
        .collect();
    all.insert(
        "gitlab".to_owned(),
        UNDER_GITLAB.into_iter().map(described).collect(),
    );
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_is_the_hosts_parent_and_never_a_top_level_one() {
        assert_eq!(parent("git.example.com"), "example.com");
        assert_eq!(parent("git.dev.example.com"), "dev.example.com");
        assert_eq!(parent("example.com"), "example.com");
        assert_eq!(parent("gitlab"), "gitlab");
    }
}
