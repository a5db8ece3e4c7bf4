//! Fault injection for tests: responses that fail before or after the commit, come late or never, watches that end or
//! lag, and a client that dies after its nth write.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;

use crate::answer::Answer;
use crate::error::ApiError;
use crate::request::Call;
use crate::server::Server;

/// The requests that a fault applies to. Empty fields match everything.
#[derive(Debug, Clone, Default)]
pub struct Match {
    /// The user's name.
    pub user: Option<String>,
    /// Verbs such as `patch`; empty means all.
    pub verbs: Vec<&'static str>,
    /// Every verb that writes.
    pub writes: bool,
    /// The plural of the resource.
    pub resource: Option<String>,
    /// The subresource; `Some("")` is the object itself.
    pub subresource: Option<String>,
    /// The object's name.
    pub name: Option<String>,
}

impl Match {
    /// All writes.
    pub fn writes() -> Self {
        Self {
            writes: true,
            ..Self::default()
        }
    }

    /// All requests of one verb.
    pub fn verb(verb: &'static str) -> Self {
        Self {
            verbs: vec![verb],
            ..Self::default()
        }
    }

    /// Only requests for this resource.
    #[must_use]
    pub fn on(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Only requests of this user.
    #[must_use]
    pub fn by(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self
    }

    fn holds(&self, call: &Call) -> bool {
        let equal =
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        equal(&self.user, &call.user.name)
            && (self.verbs.is_empty() || self.verbs.contains(&call.verb.name()))
            && (!self.writes || (call.verb.writes() && !call.query.flag("dryRun")))
            && equal(&self.resource, &call.target.plural)
            && equal(&self.subresource, &call.target.subresource)
            && equal(&self.name, &call.target.name)
    }
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Fails with this HTTP status; nothing is written.
    Fail(u16),
    /// Is processed, but fails with this HTTP status.
    FailAfter(u16),
    /// 409, as if another client had written the object in the meantime.
    Conflict,
    /// 429 with `Retry-After` in seconds.
    Throttle(u32),
    /// 410: the resource version is too old.
    Expire,
    /// The response is delayed by this much.
    Delay(Duration),
    /// There is no response, and nothing is written.
    Hang,
    /// Is processed, but neither it nor any later request of the same user gets a response, and its open watches
    /// deliver nothing more: the client is dead.
    Crash,
    /// The watch ends after this many events.
    EndWatch(usize),
    /// The watch delivers every event this much later.
    LagWatch(Duration),
}

impl Effect {
    /// Whether it affects the events of a watch, and not its response.
    fn is_of_watch(&self) -> bool {
        matches!(self, Self::EndWatch(_) | Self::LagWatch(_))
    }
}

#[derive(Debug)]
struct Rule {
    when: Match,
    skip: usize,
    times: usize,
    effect: Effect,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    dead: Vec<String>,
    /// Number of writes that passed, by user.
    writes: Vec<(String, usize)>,
}

impl State {
    /// The effect of the first due rule of a type. All matching rules of that type count the request.
    fn strike(&mut self, call: &Call, sort: impl Fn(&Effect) -> bool) -> Option<Effect> {
        let mut struck = None;
        for rule in &mut self.rules {
            if !sort(&rule.effect) || !rule.when.holds(call) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if rule.times > 0 && struck.is_none() {
                rule.times -= 1;
                struck = Some(rule.effect.clone());
            }
        }
        self.rules.retain(|rule| rule.times > 0);
        struck
    }
}

/// The configured faults.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

/// The decision for one request.
#[derive(Debug)]
pub(crate) struct Decided {
    effect: Option<Effect>,
    dead: bool,
}

impl Faults {
    fn state(&self) -> parking_lot::MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Skips `skip` matching requests and applies to the next `times`.
    pub fn add(&self, when: Match, skip: usize, times: usize, effect: Effect) {
        self.state().rules.push(Rule {
            when,
            skip,
            times,
            effect,
        });
    }

    /// Applies to the next matching request.
    pub fn once(&self, when: Match, effect: Effect) {
        self.add(when, 0, 1, effect);
    }

    /// Removes all faults and revives dead clients.
    pub fn clear(&self) {
        *self.state() = State::default();
    }

    /// Number of faults that have not occurred yet.
    pub fn waiting(&self) -> usize {
        self.state().rules.iter().map(|rule| rule.times).sum()
    }

    /// Whether the user's client died of [`Effect::Crash`].
    pub fn is_dead(&self, user: &str) -> bool {
        self.state().dead.iter().any(|dead| dead == user)
    }

    /// Number of writes of this user that passed.
    pub fn writes(&self, user: &str) -> usize {
        self.state()
            .writes
            .iter()
            .find(|(name, _)| name == user)
            .map_or(0, |(_, count)| *count)
    }

    pub(crate) fn find(&self, call: &Call) -> Decided {
        let mut state = self.state();
        let user = &call.user.name;
        if state.dead.contains(user) {
            return Decided {
                effect: None,
                dead: true,
            };
        }
        let effect = state.strike(call, |effect| !effect.is_of_watch());
        if effect == Some(Effect::Crash) {
            state.dead.push(user.clone());
        }
        if call.verb.writes() && call.query.get("dryRun").is_none() {
            match state.writes.iter_mut().find(|(name, _)| name == user) {
                Some((_, count)) => *count += 1,
                None => state.writes.push((user.clone(), 1)),
            }
        }
        Decided { effect, dead: false }
    }

    /// The effect on a watch that begins now.
    pub(crate) fn of_watch(&self, call: &Call) -> Option<Effect> {
        self.state().strike(call, Effect::is_of_watch)
    }
}

fn failure(code: u16) -> ApiError {
    match code {
        409 => ApiError::new(
            409,
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        410 => ApiError::expired("The resourceVersion for the provided watch is too old."),
        429 => ApiError::new(
            429,
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => ApiError::new(
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        504 => ApiError::new(
            504,
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        code => {
            let mut error = ApiError::internal("injected fault");
            error.code = code;
            error
        }
    }
}

impl Decided {
    pub(crate) async fn before(&self, _server: &Server) -> Option<Answer> {
        if self.dead {
            return std::future::pending().await;
        }
        match self.effect.as_ref()? {
            Effect::Fail(code) => Some(failure(*code).into()),
            Effect::Conflict => Some(failure(409).into()),
            Effect::Expire => Some(failure(410).into()),
            Effect::Throttle(seconds) => {
                let mut error = failure(429);
                error
                    .details
                    .insert("retryAfterSeconds".to_owned(), json!(seconds));
                Some(error.into())
            }
            Effect::Hang => std::future::pending().await,
            Effect::Delay(time) => {
                tokio::time::sleep(*time).await;
                None
            }
            Effect::FailAfter(_) | Effect::Crash | Effect::EndWatch(_) | Effect::LagWatch(_) => None,
        }
    }

    pub(crate) async fn after(&self, _server: &Server, answer: Answer) -> Answer {
        match self.effect {
            Some(Effect::FailAfter(code)) => failure(code).into(),
            Some(Effect::Crash) => std::future::pending().await,
            _ => answer,
        }
    }
}
