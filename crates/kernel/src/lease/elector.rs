//! Leader election: waits for the Lease, runs the work while it is renewed, and releases it.

use std::pin::pin;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::ambient;

use super::{
    Leadership, LeaseSettings,
    leadership::Tenure,
    record::{self, Candidacy, Observed},
    settle,
};
use crate::watch::backoff;

/// A candidate for one Lease. Needs [`super::rules`].
#[derive(Clone)]
pub struct Elector {
    leases: Api<Lease>,
    settings: LeaseSettings,
}

/// The result of a term.
#[derive(Debug, PartialEq, Eq)]
pub enum Term<T> {
    /// The work finished while we were the leader, and the Lease was released.
    Finished(T),
    /// The Lease was lost; the work was dropped, and its tasks have ended, or the Lease may have expired. The process should exit (its supervisor starts a new one) or call
    /// [`Elector::lead`] again with new work.
    Lost,
    /// Shutdown was requested before we were elected; the work never began.
    NeverLed,
}

/// The result of one attempt to write the Lease.
enum Attempt {
    Held,
    HeldBy(String),
    /// Another write happened between our read and our write.
    Raced,
}

/// Why an attempt had no result.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error("the API server did not answer in time")]
    Timeout,
    #[error(transparent)]
    Api(#[from] kube::Error),
}

impl Elector {
    /// `client` must not have a [`Fence`](super::Fence): it writes the Lease.
    pub fn new(client: Client, settings: LeaseSettings) -> Self {
        Self {
            leases: Api::namespaced(client, &settings.namespace),
            settings,
        }
    }

    /// Waits until this replica is the leader, then runs `work` while the Lease is renewed.
    ///
    /// - The Lease is lost: the work is dropped at once, then [`Leadership::tasks`] have until the Lease can expire,
    ///   [`Term::Lost`].
    /// - The work ends, as it should some time after `shutdown`: the Lease is released, so that the next replica need
    ///   not wait for its expiry. Until then it is renewed, so a slow drain is safe.
    /// - `shutdown` before the election: [`Term::NeverLed`].
    pub async fn lead<F: Future>(
        &self,
        shutdown: CancellationToken,
        work: impl FnOnce(Leadership) -> F,
    ) -> Term<F::Output> {
        let Some(acquired) = shutdown.run_until_cancelled(self.acquire()).await else {
            // The cancelled attempt may have succeeded.
            self.release().await;
            return Term::NeverLed;
        };
        let tenure = Tenure::new(acquired + self.settings.timings.renew_deadline());
        let leadership = tenure.leadership();
        let tasks = leadership.tasks().clone();
        let outcome = leadership
            .while_valid(async {
                let mut taken = pin!(self.renew(&tenure));
                let mut work = pin!(work(leadership.clone()));
                tokio::select! {
                    biased;
                    () = &mut taken => None,
                    output = &mut work => Some(output),
                }
            })
            .await;
        // Ends every clone of the leadership, before another replica can begin.
        drop(tenure);
        if let Ok(Some(output)) = outcome {
            self.release().await;
            return Term::Finished(output);
        }
        warn!(lease = %self.settings.name, identity = %self.settings.identity, "leadership lost");
        // A statement that is not cancelled may commit after the next leader has begun.
        settle(&tasks, self.settings.timings.margin()).await;
        Term::Lost
    }

    /// Returns the moment from which the first renew deadline counts.
    async fn acquire(&self) -> Instant {
        info!(lease = %self.settings.name, identity = %self.settings.identity, "waiting for the leader lease");
        let mut observed = Observed::default();
        let mut holder = None;
        let mut given_back = pin!(self.given_back());
        loop {
            // Taken before the request: the others count from when they see the write, and that may be long before we
            // read the response.
            let sent = Instant::now();
            match self.attempt(&mut observed).await {
                Ok(Attempt::Held) => {
                    info!(lease = %self.settings.name, identity = %self.settings.identity, "leading");
                    return sent;
                }
                Ok(Attempt::HeldBy(other)) => {
                    if holder.as_ref() != Some(&other) {
                        info!(lease = %self.settings.name, holder = %other, "another replica leads");
                    }
                    holder = Some(other);
                }
                Ok(Attempt::Raced) => {}
                Err(error) => {
                    warn!(lease = %self.settings.name, %error, "cannot read or write the leader lease");
                }
            }
            // Candidates that were started together should not send their requests together.
            let jitter = 1.0 + ambient::fraction() / 2.0;
            let pause = Instant::now() + self.settings.timings.retry_period().mul_f64(jitter);
            let expiry = observed
                .expires(&self.settings)
                .filter(|expiry| *expiry > Instant::now());
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(expiry.map_or(pause, |expiry| expiry.min(pause))) => {}
                Some(()) = given_back.next() => {}
            }
        }
    }

    /// Notifies when the Lease has no holder any more. Without permission to watch it never does, and the next read
    /// finds out.
    fn given_back(&self) -> impl Stream<Item = ()> + use<> {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.settings.name));
        watcher::watcher(self.leases.clone(), config)
            .backoff(backoff())
            .filter_map(|event| {
                let free = |lease: &Lease| {
                    let spec = lease.spec.as_ref();
                    spec.and_then(|spec| spec.holder_identity.as_deref())
                        .is_none_or(str::is_empty)
                };
                std::future::ready(match event {
                    Ok(Event::Apply(lease)) => free(&lease).then_some(()),
                    _ => None,
                })
            })
    }

    /// Renews until another replica holds the Lease. Failures only count towards the deadline.
    async fn renew(&self, tenure: &Tenure) {
        let timings = self.settings.timings;
        let mut ticks =
            tokio::time::interval_at(Instant::now() + timings.retry_period(), timings.retry_period());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut observed = Observed::default();
        loop {
            ticks.tick().await;
            let sent = Instant::now();
            match self.attempt(&mut observed).await {
                Ok(Attempt::Held) => tenure.extend(sent + timings.renew_deadline()),
                Ok(Attempt::HeldBy(other)) => {
                    tenure.end();
                    warn!(lease = %self.settings.name, holder = %other, "another replica took the leader lease");
                    return;
                }
                // The Lease was labelled, or our own timed-out write arrived after all: read it again.
                Ok(Attempt::Raced) => {}
                Err(error) => warn!(lease = %self.settings.name, %error, "cannot renew the leader lease"),
            }
        }
    }

    /// Reads the Lease and writes it if we may. Every wait has a limit.
    async fn attempt(&self, observed: &mut Observed) -> Result<Attempt, AttemptError> {
        let limit = self.settings.timings.request_timeout();
        tokio::time::timeout(limit, self.attempt_unbounded(observed))
            .await
            .map_err(|_| AttemptError::Timeout)?
    }

    async fn attempt_unbounded(&self, observed: &mut Observed) -> Result<Attempt, AttemptError> {
        let name = &self.settings.name;
        let written = match self.leases.get_opt(name).await? {
            None => {
                if let Candidacy::HeldBy(other) = observed.judge_missing(&self.settings, Instant::now()) {
                    return Ok(Attempt::HeldBy(other));
                }
                let lease = Lease {
                    metadata: ObjectMeta {
                        name: Some(name.clone()),
                        ..ObjectMeta::default()
                    },
                    spec: Some(record::held(None, &self.settings, ambient::now())),
                };
                self.leases.create(&PostParams::default(), &lease).await
            }
            Some(lease) => {
                let spec = lease.spec.clone().unwrap_or_default();
                if let Candidacy::HeldBy(other) = observed.judge(&spec, &self.settings, Instant::now()) {
                    return Ok(Attempt::HeldBy(other));
                }
                let spec = Some(record::held(Some(&spec), &self.settings, ambient::now()));
                // A replace contains the resourceVersion that was read: of two candidates one gets 409.
                self.leases
                    .replace(name, &PostParams::default(), &Lease { spec, ..lease })
                    .await
            }
        };
        match written {
            Ok(_) => Ok(Attempt::Held),
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                Ok(Attempt::Raced)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Releases the Lease if we hold it. If that fails, it expires later.
    async fn release(&self) {
        let limit = self.settings.timings.request_timeout();
        match tokio::time::timeout(limit, self.release_unbounded()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(lease = %self.settings.name, %error, "cannot release the leader lease"),
            Err(_) => warn!(lease = %self.settings.name, "no answer while releasing the leader lease"),
        }
    }

    async fn release_unbounded(&self) -> Result<(), kube::Error> {
        let name = &self.settings.name;
        let Some(lease) = self.leases.get_opt(name).await? else {
            return Ok(());
        };
        let spec = lease.spec.clone().unwrap_or_default();
        if spec.holder_identity.as_deref() != Some(self.settings.identity.as_str()) {
            return Ok(());
        }
        let spec = Some(record::released(&spec, ambient::now()));
        self.leases
            .replace(name, &PostParams::default(), &Lease { spec, ..lease })
            .await?;
        info!(lease = %name, "leader lease released");
        Ok(())
    }
}
