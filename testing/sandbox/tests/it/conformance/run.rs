//! Runs one case against a server.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};

use super::mask;

/// A controller of a busy cluster may be slow.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// The code of an answer that did not come in time: it differs from everything that was recorded.
pub(crate) const NEVER: u16 = 0;

/// A named sequence of requests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) case: String,
    pub(crate) steps: Vec<Step>,
}

/// A webhook server that cases refer to as `{webhook}`, and its certificate as `{authority}`.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) url: String,
    pub(crate) authority: String,
}

/// The clients of a server.
pub(crate) struct Clients {
    /// With the administrator as user.
    pub(crate) admin: kube::Client,
    /// Without a user, unless a request has a token.
    pub(crate) stranger: kube::Client,
}

/// One request. Texts may contain `{ns}` (the namespace of the case), `{group}` (the API group of the case) and values
/// that earlier steps have saved.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Method and path, such as `GET /api/v1/namespaces/{ns}/pods`.
    #[serde(rename = "do")]
    request: String,
    #[serde(default)]
    body: Value,
    /// The raw body, if it is not JSON.
    raw: Option<String>,
    /// The content type: `json`, `merge`, `strategic`, `apply`, or a media type.
    #[serde(rename = "type")]
    content_type: Option<String>,
    accept: Option<String>,
    /// The user to impersonate.
    #[serde(rename = "as")]
    user: Option<String>,
    /// The bearer token to use instead of the administrator's; empty for no token.
    token: Option<String>,
    /// Additional headers, such as `impersonate-group: g`.
    #[serde(default)]
    headers: Vec<String>,
    /// Values to keep for later steps: name and JSON pointer.
    #[serde(default)]
    save: BTreeMap<String, String>,
    /// Repeats the request until the value at each pointer is this one; `null` means absent, `code` is the HTTP status,
    /// and `/status/conditions/Ready/status` selects a condition by its type.
    #[serde(default)]
    until: BTreeMap<String, Value>,
    /// The only part of the answer that is compared, as a pointer whose steps may be `key=value` to select the item of
    /// a list.
    show: Option<String>,
    /// JSON pointers that are not compared.
    #[serde(default)]
    ignore: Vec<String>,
    /// The answer is not compared at all: the step is preparation.
    #[serde(default)]
    quiet: bool,
}

fn fill(text: &str, saved: &BTreeMap<String, String>) -> String {
    saved.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

fn media(name: &str) -> &str {
    match name {
        "json" => "application/json-patch+json",
        "merge" => "application/merge-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
        "metadata" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "metadatalist" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        other => other,
    }
}

struct Answer {
    code: u16,
    warnings: Vec<String>,
    body: Value,
}

async fn send(clients: &Clients, step: &Step, saved: &BTreeMap<String, String>) -> Answer {
    let request = fill(&step.request, saved);
    let (method, path) = request.split_once(' ').unwrap();
    let mut builder = Request::builder()
        .method(method)
        .uri(path.replace(' ', "%20"))
        .header("user-agent", "conformance/1");
    let content_type = step.content_type.as_deref().map_or("application/json", media);
    builder = builder.header("content-type", content_type);
    builder = builder.header("accept", step.accept.as_deref().map_or("application/json", media));
    if let Some(user) = &step.user {
        builder = builder.header("impersonate-user", fill(user, saved));
    }
    for header in &step.headers {
        let header = fill(header, saved);
        let (name, value) = header.split_once(": ").unwrap();
        builder = builder.header(name, value);
    }
    let client = match &step.token {
        Some(token) => {
            let token = fill(token, saved);
            if !token.is_empty() {
                builder = builder.header("authorization", format!("Bearer {token}"));
            }
            &clients.stranger
        }
        None => &clients.admin,
    };
    let body = match (&step.raw, &step.body) {
        (Some(raw), _) => fill(raw, saved),
        (None, Value::Null) => String::new(),
        (None, body) => fill(&body.to_string(), saved),
    };
    let answer = client
        .send(builder.body(Body::from(body.into_bytes())).unwrap())
        .await
        .unwrap();
    let code = answer.status().as_u16();
    let warnings = answer
        .headers()
        .get_all("warning")
        .iter()
        .map(|w| w.to_str().unwrap().to_owned())
        .collect();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&bytes);
    let body = serde_json::from_str(&text).unwrap_or_else(|_| {
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        lines.map_or_else(|_| json!(text), |lines| json!({"lines": lines}))
    });
    Answer { code, warnings, body }
}

fn satisfied(step: &Step, answer: &Answer, saved: &BTreeMap<String, String>) -> bool {
    step.until.iter().all(|(pointer, wanted)| {
        let found = if pointer == "code" {
            Some(json!(answer.code))
        } else {
            mask::at(&answer.body, &fill(pointer, saved)).cloned()
        };
        let wanted = match wanted {
            Value::String(text) => json!(fill(text, saved)),
            other => other.clone(),
        };
        found.unwrap_or_default() == wanted
    })
}

/// The number of events in the body of a watch. Bookmarks come at any time.
fn events(body: &Value) -> usize {
    let is_event = |line: &Value| line["object"].is_object() && line["type"] != "BOOKMARK";
    match &body["lines"] {
        Value::Array(lines) => lines.iter().filter(|line| is_event(line)).count(),
        _ => usize::from(is_event(body)),
    }
}

/// The answer that the step waits for: usually the first. A watch lasts a second, in which a busy server may not send
/// everything, so it is repeated until it has at least the `expected` events.
async fn ask(clients: &Clients, step: &Step, saved: &BTreeMap<String, String>, expected: usize) -> Answer {
    let deadline = tokio::time::Instant::now() + WAIT_TIMEOUT;
    loop {
        let answer = send(clients, step, saved).await;
        let is_satisfied = satisfied(step, &answer, saved);
        if is_satisfied && events(&answer.body) >= expected {
            return answer;
        }
        if is_satisfied && tokio::time::Instant::now() >= deadline {
            return answer;
        }
        if tokio::time::Instant::now() >= deadline {
            let body = json!({"never came to": step.until, "but to": answer.code, "with": answer.body});
            return Answer {
                code: NEVER,
                body,
                ..answer
            };
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The masked answers of all steps that are compared. `recorded` contains the answers that a slow server may still come
/// to.
pub(crate) async fn run(
    clients: &Clients,
    case: &Case,
    hook: Option<&Hook>,
    recorded: Option<&Value>,
) -> Value {
    let unique = format!("c{:08x}", rand::random::<u32>());
    let mut saved = BTreeMap::from([
        ("ns".to_owned(), unique.clone()),
        ("group".to_owned(), format!("{unique}.example.com")),
    ]);
    if let Some(hook) = hook {
        saved.insert("webhook".to_owned(), hook.url.clone());
        saved.insert("authority".to_owned(), STANDARD.encode(&hook.authority));
    }
    let namespace = Step::simple("POST /api/v1/namespaces", json!({"metadata": {"name": unique}}));
    send(clients, &namespace, &saved).await;
    // Objects that a controller creates in every namespace would be in some lists and not in others.
    let mut furnished = Step::simple(
        "GET /api/v1/namespaces/{ns}/configmaps/kube-root-ca.crt",
        Value::Null,
    );
    furnished.until.insert("code".to_owned(), json!(200));
    ask(clients, &furnished, &saved, 0).await;
    let mut answers = Vec::new();
    for step in &case.steps {
        let expected = match recorded {
            Some(recorded) if !step.quiet => events(&recorded[answers.len()]["body"]),
            _ => 0,
        };
        let answer = ask(clients, step, &saved, expected).await;
        for (name, pointer) in &step.save {
            let value = answer.body.pointer(pointer);
            let value = value.map_or_else(
                || format!("<nothing at {pointer}>"),
                |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            );
            saved.insert(name.clone(), value);
        }
        if !step.quiet {
            let body = match &step.show {
                Some(pointer) => mask::at(&answer.body, &fill(pointer, &saved)).cloned(),
                None => Some(answer.body),
            };
            let mut shown = json!({"code": answer.code, "body": body});
            if !answer.warnings.is_empty() {
                shown["warnings"] = json!(answer.warnings);
            }
            let own = [
                (unique.as_str(), "<ns>"),
                (hook.map_or("", |hook| &hook.url), "<webhook>"),
            ];
            answers.push(mask::masked(shown, &step.ignore, &own));
        }
    }
    // The namespace stays until the cluster ends: deleting hundreds of them would keep the controller busy that some
    // cases wait for.
    Value::Array(answers)
}

impl Step {
    fn simple(request: &str, body: Value) -> Self {
        Self {
            request: request.to_owned(),
            body,
            quiet: true,
            ..Self::default()
        }
    }
}
