//! Reads what users provide in their Secrets: a database, a Redis, a mail server.

use k8s_openapi::api::core::v1::Secret;

use super::{DATABASE, USERNAME};
use crate::login::{Mail, Psql, RedisLogin, RedisServer};
use crate::secret_keys::{Keys, Unusable};

/// The authentication methods for mail servers that GitLab supports.
const AUTHENTICATIONS: [&str; 3] = ["login", "plain", "cram_md5"];

/// The database: `host`, `port`, `password`; optionally `database` and `username`.
pub(crate) fn psql(secret: &Secret) -> Result<Psql, Unusable> {
    let mut keys = Keys::of(secret);
    let psql = Psql {
        address: keys.address("host", "port"),
        behind_pooler: None,
        database: keys.optional("database").unwrap_or_else(|| DATABASE.to_owned()),
        username: keys.optional("username").unwrap_or_else(|| USERNAME.to_owned()),
        password: keys.sealed("password"),
    };
    keys.finish(psql)
}

/// Redis: `host`, `port`, `password`.
pub(crate) fn redis(secret: &Secret) -> Result<RedisLogin, Unusable> {
    let mut keys = Keys::of(secret);
    let login = RedisLogin {
        server: RedisServer::At(keys.address("host", "port")),
        password: keys.sealed("password"),
    };
    keys.finish(login)
}

/// The mail server: `host`, `port`; `username` and `password`, both or neither; `from`, `replyTo`, `authentication`
/// (one that GitLab supports, `login` by default) and `starttls` (`true` by default).
pub(crate) fn mail(secret: &Secret) -> Result<Mail, Unusable> {
    let mut keys = Keys::of(secret);
    let address = keys.address("host", "port");
    let login = ["username", "password", "authentication"]
        .iter()
        .any(|key| keys.has(key));
    let mail = Mail {
        address,
        username: login.then(|| keys.text("username")),
        password: login.then(|| keys.sealed("password")),
        authentication: login.then(|| authentication(&mut keys)),
        starttls: starttls(&mut keys),
        from: keys.optional("from"),
        reply_to: keys.optional("replyTo"),
    };
    keys.finish(mail)
}

fn authentication(keys: &mut Keys<'_>) -> String {
    let [usual, ..] = AUTHENTICATIONS;
    let chosen = keys
        .optional("authentication")
        .unwrap_or_else(|| usual.to_owned());
    if !AUTHENTICATIONS.contains(&chosen.as_str()) {
        keys.wrong("authentication", "login, plain or cram_md5");
    }
    chosen
}

fn starttls(keys: &mut Keys<'_>) -> bool {
    match keys.optional("starttls").as_deref() {
        None | Some("true") => true,
        Some("false") => false,
        Some(_) => {
            keys.wrong("starttls", "true or false");
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::{Address, SecretKey};
    use crate::secret_keys::tests::secret;

    fn password(secret: &str) -> SecretKey {
        SecretKey {
            secret: secret.into(),
            key: "password".into(),
        }
    }

    #[test]
    fn a_database_has_the_usual_names_unless_it_says_others() {
        let given = [("host", "db.example.com"), ("port", "5433"), ("password", "p")];
        let usual = psql(&secret("pg", &given)).unwrap();
        assert_eq!(
            usual.address,
            Address {
                host: "db.example.com".into(),
                port: 5433
            }
        );
        assert_eq!(
            (usual.database.as_str(), usual.username.as_str()),
            ("gitlabhq_production", "gitlab")
        );
        assert_eq!((usual.password, usual.behind_pooler), (password("pg"), None));

        let others = [given.as_slice(), &[("database", "git"), ("username", "me")]].concat();
        let others = psql(&secret("pg", &others)).unwrap();
        assert_eq!(
            (others.database.as_str(), others.username.as_str()),
            ("git", "me")
        );
    }

    #[test]
    fn a_redis_without_a_password_is_not_used() {
        let error = redis(&secret("redis", &[("host", "r"), ("port", "6379")])).unwrap_err();
        assert_eq!(error.to_string(), "Secret redis: it lacks password");
        let login = redis(&secret(
            "redis",
            &[("host", "r"), ("port", "6379"), ("password", "p")],
        ))
        .unwrap();
        assert_eq!(login.password, password("redis"));
        assert_eq!(
            login.server,
            RedisServer::At(Address {
                host: "r".into(),
                port: 6379
            })
        );
    }

    #[test]
    fn a_mail_server_may_let_everybody_in() {
        let mail = mail(&secret(
            "mail",
            &[("host", "relay"), ("port", "25"), ("starttls", "false")],
        ))
        .unwrap();
        assert_eq!(
            (mail.username, mail.password, mail.authentication),
            (None, None, None)
        );
        assert!(!mail.starttls);
    }

    #[test]
    fn a_mail_server_with_everything() {
        let all = [
            ("host", "smtp.example.com"),
            ("port", "587"),
            ("username", "git"),
            ("password", "p"),
            ("authentication", "plain"),
            ("from", "git@example.com"),
            ("replyTo", "noreply@example.com"),
        ];
        let mail = mail(&secret("mail", &all)).unwrap();
        assert_eq!(
            (mail.username.as_deref(), mail.password),
            (Some("git"), Some(password("mail")))
        );
        assert_eq!(
            (mail.authentication.as_deref(), mail.starttls),
            (Some("plain"), true)
        );
        assert_eq!(mail.from.as_deref(), Some("git@example.com"));
        assert_eq!(mail.reply_to.as_deref(), Some("noreply@example.com"));
    }

    #[test]
    fn half_a_login_at_a_mail_server_is_a_mistake() {
        let half = [
            ("host", "smtp"),
            ("port", "x"),
            ("username", "git"),
            ("authentication", "ntlm"),
            ("starttls", "yes"),
        ];
        let error = mail(&secret("mail", &half)).unwrap_err().to_string();
        assert_eq!(
            error,
            "Secret mail: it lacks password; port is not a port number; \
             authentication is not login, plain or cram_md5; starttls is not true or false"
        );
    }
}
