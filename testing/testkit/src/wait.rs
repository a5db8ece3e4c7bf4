//! Waits for a condition with a deadline, and shows the current state on failure.
//!
//! Tests never sleep for a fixed time. A failure shows the object, its events and the operator's log, because a message
//! that only says "timed out" makes its reader run the test again.

use std::{
    fmt::{self, Debug, Write as _},
    panic::Location,
    time::Duration,
};

use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, Resource,
    api::{DeleteParams, ListParams},
    runtime::wait::await_condition,
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::{Instant, sleep, timeout};

use crate::operator_log::OperatorLog;

const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Waits until `check` is satisfied and returns what it found. See [`Wait::eventually`].
#[track_caller]
pub fn eventually<V: Verdict, F: Future<Output = V>>(
    deadline: Duration,
    what: &str,
    check: impl FnMut() -> F,
) -> impl Future<Output = V::Value> {
    within(deadline).eventually(what, check)
}

/// Waits until the object exists and satisfies `condition`. See [`Wait::until`].
#[track_caller]
pub fn until<K>(
    api: &Api<K>,
    name: &str,
    deadline: Duration,
    condition: impl Fn(&K) -> bool + Send,
) -> impl Future<Output = K>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + 'static,
{
    within(deadline).until(api, name, condition)
}

/// Waits until there is no object of that name. See [`Wait::gone`].
#[track_caller]
pub fn gone<K>(api: &Api<K>, name: &str, deadline: Duration) -> impl Future<Output = ()>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + 'static,
{
    within(deadline).gone(api, name)
}

/// Deletes the object and waits until it is gone, as `kubectl delete` does.
pub async fn deleted<K>(api: &Api<K>, name: &str, deadline: Duration)
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + 'static,
{
    let deleted = api.delete(name, &DeleteParams::default()).await;
    deleted.unwrap_or_else(|error| panic!("delete {name}: {error}"));
    gone(api, name, deadline).await;
}

/// Starts a wait that takes at most `deadline`.
pub fn within(deadline: Duration) -> Wait<'static> {
    Wait { deadline, log: None }
}

/// The result of a check: `bool`, `Option` (some is success) or `Result` (the last error is shown).
pub trait Verdict {
    /// What a successful check yields.
    type Value;

    /// The value, or why it is not available yet.
    fn verdict(self) -> Result<Self::Value, String>;
}

impl Verdict for bool {
    type Value = ();

    fn verdict(self) -> Result<(), String> {
        if self {
            Ok(())
        } else {
            Err("it is not so".to_owned())
        }
    }
}

impl<T> Verdict for Option<T> {
    type Value = T;

    fn verdict(self) -> Result<T, String> {
        self.ok_or_else(|| "there is nothing".to_owned())
    }
}

impl<T, E: fmt::Display> Verdict for Result<T, E> {
    type Value = T;

    fn verdict(self) -> Result<T, String> {
        self.map_err(|error| error.to_string())
    }
}

/// A deadline, and what to show when it passes.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    deadline: Duration,
    log: Option<&'a OperatorLog>,
}

impl<'a> Wait<'a> {
    /// Shows the end of this log on failure.
    #[must_use]
    pub fn showing(self, log: &'a OperatorLog) -> Self {
        Self {
            log: Some(log),
            ..self
        }
    }

    /// Repeats `check` until it is satisfied; panics with `what` and the last verdict at the deadline.
    ///
    /// A check that does not return counts as not satisfied.
    #[track_caller]
    pub fn eventually<V: Verdict, F: Future<Output = V>>(
        self,
        what: &str,
        mut check: impl FnMut() -> F,
    ) -> impl Future<Output = V::Value> {
        let caller = Location::caller();
        async move {
            let end = Instant::now() + self.deadline;
            let mut last = "the check did not return".to_owned();
            while let Ok(found) = tokio::time::timeout_at(end, check()).await {
                match found.verdict() {
                    Ok(value) => return value,
                    Err(why) => last = why,
                }
                if Instant::now() >= end {
                    break;
                }
                sleep(POLL_INTERVAL).await;
            }
            panic!("{}", self.failure(caller, what, &format!("last seen: {last}\n")))
        }
    }

    /// Watches the object until it exists and satisfies `condition`, and returns it.
    #[track_caller]
    pub fn until<K>(
        self,
        api: &Api<K>,
        name: &str,
        condition: impl Fn(&K) -> bool + Send,
    ) -> impl Future<Output = K>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + 'static,
    {
        let caller = Location::caller();
        async move {
            let met = move |object: Option<&K>| object.is_some_and(&condition);
            match timeout(self.deadline, await_condition(api.clone(), name, met)).await {
                Ok(Ok(Some(object))) => object,
                Ok(Ok(None)) => unreachable!("the condition is not met by an absent object"),
                Ok(Err(error)) => panic!("{caller}: watching {name}: {error}"),
                Err(_) => self.fail(caller, "a condition", api, name).await,
            }
        }
    }

    /// Watches until no object with that name exists.
    #[track_caller]
    pub fn gone<K>(self, api: &Api<K>, name: &str) -> impl Future<Output = ()>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + 'static,
    {
        let caller = Location::caller();
        async move {
            let absent = |object: Option<&K>| object.is_none();
            match timeout(self.deadline, await_condition(api.clone(), name, absent)).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => panic!("{caller}: watching {name}: {error}"),
                Err(_) => self.fail(caller, "the end", api, name).await,
            }
        }
    }

    async fn fail<K>(self, caller: &Location<'_>, what: &str, api: &Api<K>, name: &str) -> !
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        let object = match api.get_opt(name).await {
            Ok(Some(object)) => yaml(&object),
            Ok(None) => "there is no such object\n".to_owned(),
            Err(error) => format!("it cannot be read: {error}\n"),
        };
        let events = events(api, name).await;
        let what = format!("{what} of {name}");
        panic!(
            "{}",
            self.failure(
                caller,
                &what,
                &format!("--- object\n{object}--- events\n{events}")
            )
        )
    }

    fn failure(self, caller: &Location<'_>, what: &str, found: &str) -> String {
        let mut text = format!("{caller}: waited {:?} for {what}\n{found}", self.deadline);
        if let Some(log) = self.log {
            let _ = write!(text, "--- operator's log\n{}", log.tail());
        }
        text
    }
}

/// The object as `kubectl get -o yaml` shows it.
fn yaml<K: Serialize>(object: &K) -> String {
    let mut object = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = object
        .get_mut("metadata")
        .and_then(|metadata| metadata.as_object_mut())
    {
        metadata.remove("managedFields");
    }
    serde_saphyr::to_string(&object).unwrap_or_else(|_| object.to_string())
}

async fn events<K: Resource + Clone>(api: &Api<K>, name: &str) -> String {
    let client = api.clone().into_client();
    let events: Api<Event> = match api.namespace() {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let listed = match events.list(&ListParams::default()).await {
        Ok(listed) => listed,
        Err(error) => return format!("they cannot be read: {error}\n"),
    };
    let mut text = String::new();
    for event in listed.items {
        if event
            .regarding
            .as_ref()
            .and_then(|regarding| regarding.name.as_deref())
            == Some(name)
        {
            let part = |value: &Option<String>| value.clone().unwrap_or_default();
            let _ = writeln!(
                text,
                "{} {}: {}",
                part(&event.type_),
                part(&event.reason),
                part(&event.note)
            );
        }
    }
    text
}
