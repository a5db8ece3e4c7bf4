//! The mail server.

use serde_json::{Value, json};

use super::Input;
use super::merge::layered;
use crate::login::Mail;

/// The port for implicit TLS, where STARTTLS is not possible.
const ENCRYPTED_PORT: u16 = 465;

pub(super) fn values(input: &Input<'_>) -> Value {
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
