//! The idle connections of an account: which one is used next, and when they are closed.

use std::sync::{Arc, Weak};

use futures::future::join_all;
use tokio::time::{Instant, sleep_until};

use super::{Host, Login, login};
use crate::connection_config::{ConnectionConfig, Fingerprint};
use crate::session::Session;

pub(in crate::pool) struct Idle {
    pub(in crate::pool) session: Session,
    pub(in crate::pool) fingerprint: Fingerprint,
    pub(in crate::pool) opened: Instant,
    pub(in crate::pool) since: Instant,
}

impl Idle {
    fn login(&self) -> Login {
        login(self.session.target())
    }
}

/// The next action of a task with a permit.
pub(super) enum Next {
    Use(Box<Idle>),
    /// Close these, then open a new connection in their place.
    Open(Vec<Idle>),
}

impl Host {
    /// Selects a connection, or makes room for a new one.
    pub(super) fn next(&self, target: &ConnectionConfig, fingerprint: Fingerprint) -> Next {
        let login = login(target);
        let mut state = self.lock();
        // Broken, too old, or with changed credentials.
        let max_age = self.settings.max_age;
        let useless = |idle: &mut Idle| {
            !idle.session.is_reusable()
                || idle.opened.elapsed() > max_age
                || (idle.fingerprint != fingerprint && idle.login() == login)
        };
        let mut replaced: Vec<_> = state.idle.extract_if(.., useless).collect();
        state.open -= replaced.len();
        // The most recently used one is the warmest.
        if let Some(index) = state
            .idle
            .iter()
            .rposition(|idle| idle.fingerprint == fingerprint)
        {
            return Next::Use(Box::new(state.idle.remove(index)));
        }
        // There are fewer in use than the limit, because we have a permit; so if all are open, some are idle.
        while state.open >= state.limit && !state.idle.is_empty() {
            replaced.push(state.idle.remove(0));
            state.open -= 1;
        }
        state.open += 1;
        Next::Open(replaced)
    }

    /// Returns a connection, before its permit.
    pub(in crate::pool) fn put(self: &Arc<Self>, idle: Idle) {
        idle.session.rest();
        let mut state = self.lock();
        // The limit may have decreased in the meantime.
        if !idle.session.is_reusable() || state.open > state.limit {
            state.open -= 1;
            return;
        }
        state.idle.push(idle);
        if !state.reaped {
            state.reaped = true;
            tokio::spawn(reap(Arc::downgrade(self)));
        }
    }

    /// Removes connections that were unused for too long; returns when to check again, if there are others.
    fn expired(&self) -> (Vec<Idle>, Option<Instant>) {
        let idle = self.settings.idle;
        let mut state = self.lock();
        let expired: Vec<_> = state
            .idle
            .extract_if(.., |one| one.since.elapsed() >= idle)
            .collect();
        state.open -= expired.len();
        let next = state.idle.first().map(|oldest| oldest.since + idle);
        state.reaped = next.is_some();
        (expired, next)
    }

    pub(in crate::pool) async fn close_idle(&self) {
        let idle = {
            let mut state = self.lock();
            state.open -= state.idle.len();
            std::mem::take(&mut state.idle)
        };
        join_all(idle.into_iter().map(|idle| idle.session.close())).await;
    }
}

/// Closes idle connections until there are none; the next idle connection starts it again.
async fn reap(host: Weak<Host>) {
    loop {
        let Some(next) = host.upgrade().and_then(|host| host.expired().1) else {
            return;
        };
        sleep_until(next).await;
    }
}
