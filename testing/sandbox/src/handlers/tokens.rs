//! `TokenRequest`: a token for a `ServiceAccount`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{body, create};
use crate::answer::{self, Answer};
use crate::auth::tokens::{AUDIENCE, Bound, Wanted};
use crate::error::{About, ApiError, FieldError};
use crate::request::Call;
use crate::server::Server;
use crate::store::{self, text};

const DEFAULT_SECONDS: i64 = 3600;
const SHORTEST_SECONDS: i64 = 600;
const LONGEST_SECONDS: i64 = 1 << 32;

/// The kinds that a token can be bound to: kind, storage, plural, and whether it is namespaced.
const BINDABLE: [(&str, &str, &str, bool); 3] = [
    ("Pod", "/pods", "pods", true),
    ("Secret", "/secrets", "secrets", true),
    ("Node", "/nodes", "nodes", false),
];

pub(crate) fn request(server: &Arc<Server>, call: &Call) -> Result<Answer, ApiError> {
    let mut request = body::parse(call)?;
    create::check_place(call, &request)?;
    let account = super::find(server, call)?;
    let seconds = request
        .pointer("/spec/expirationSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(DEFAULT_SECONDS);
    check(&request, account.name(), seconds)?;
    let (uid, own) = (text(&request, "/metadata/uid"), account.uid());
    if !uid.is_empty() && uid != own {
        let about = About {
            group: "authentication.k8s.io",
            kind: "TokenRequest",
            name: account.name(),
        };
        let why = format!(
            "the UID in the token request ({uid}) does not match the UID of the service account ({own})"
        );
        return Err(ApiError::conflict(about, &why));
    }
    let audiences: Vec<String> = match request.pointer("/spec/audiences") {
        Some(Value::Array(list)) if !list.is_empty() => list
            .iter()
            .filter_map(|audience| audience.as_str().map(str::to_owned))
            .collect(),
        _ => vec![AUDIENCE.to_owned()],
    };
    let bound = match request.pointer("/spec/boundObjectRef") {
        Some(reference) if !reference.is_null() => Some(bind(server, call, reference)?),
        _ => None,
    };
    request["kind"] = json!("TokenRequest");
    request["apiVersion"] = json!("authentication.k8s.io/v1");
    request["metadata"] = json!({
        "name": account.name(), "namespace": account.namespace(), "uid": server.clock.uid(), "creationTimestamp": server.clock.seconds(),
    });
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = json!(seconds);
    if request["spec"].get("boundObjectRef").is_none() {
        request["spec"]["boundObjectRef"] = Value::Null;
    }
    let wanted = Wanted {
        account: &account,
        audiences,
        seconds,
        bound,
    };
    let (token, expires) = server.tokens.issue(server, wanted);
    request["status"] = json!({
        "token": token, "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    Ok(answer::json(201, &request))
}

fn check(request: &Value, account: &str, seconds: i64) -> Result<(), ApiError> {
    let refused = |name: &str, error: FieldError| {
        let about = About {
            group: "authentication.k8s.io",
            kind: "TokenRequest",
            name,
        };
        ApiError::invalid(about, &[error])
    };
    let limits = [
        (seconds < SHORTEST_SECONDS, "less than 10 minutes"),
        (seconds > LONGEST_SECONDS, "larger than 2^32 seconds"),
    ];
    if let Some((_, limit)) = limits.iter().find(|(broken, _)| *broken) {
        let detail = format!("may not specify a duration {limit}");
        let error = FieldError::invalid("spec.expirationSeconds", &json!(seconds), detail);
        return Err(refused("", error));
    }
    let name = text(request, "/metadata/name");
    if !name.is_empty() && name != account {
        let detail = "must match the service account name if specified";
        return Err(refused(
            account,
            FieldError::invalid("metadata.name", &json!(name), detail),
        ));
    }
    Ok(())
}

/// The object that the token is bound to.
fn bind(server: &Server, call: &Call, reference: &Value) -> Result<Bound, ApiError> {
    let (kind, name) = (text(reference, "/kind"), text(reference, "/name"));
    let known = BINDABLE.iter().find(|(known, ..)| *known == kind);
    let known = known.filter(|_| text(reference, "/apiVersion") == "v1");
    let Some(&(_, storage, plural, namespaced)) = known else {
        let (group, version) = match text(reference, "/apiVersion").split_once('/') {
            Some(parts) => parts,
            None => ("", text(reference, "/apiVersion")),
        };
        return Err(ApiError::bad_request(format!(
            "cannot bind token to object of type {group}/{version}, Kind={kind}"
        )));
    };
    let namespace = if namespaced {
        call.namespace()
    } else {
        String::new()
    };
    let key = store::key(&namespace, name);
    let about = About {
        group: "",
        kind: plural,
        name,
    };
    let found = server.store.get(storage, &key);
    let found = found.ok_or_else(|| ApiError::not_found(about))?;
    let uid = text(reference, "/uid");
    if !uid.is_empty() && uid != found.uid() {
        let found = found.uid();
        return Err(ApiError::conflict(
            about,
            &format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated, which has UID {found}"
            ),
        ));
    }
    Ok(Bound {
        storage,
        key,
        uid: found.uid().to_owned(),
    })
}
