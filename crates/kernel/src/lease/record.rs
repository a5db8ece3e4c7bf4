//! The rules of the Lease, without I/O: whether we may write it, and what we write.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};
use tokio::time::Instant;

use super::settings::LeaseSettings;

/// The last observed Lease, and since when by our own clock.
#[derive(Debug, Default)]
pub(super) struct Observed(Option<(LeaseSpec, Instant)>);

/// Whether we may write the Lease.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Candidacy {
    /// We hold it, or it has no holder, or the holder has not renewed it for a whole lease duration.
    Ours,
    /// Another replica holds it.
    HeldBy(String),
}

impl Observed {
    /// Decides about the Lease as it was just read.
    ///
    /// A Lease of another holder expires when *we* have seen it unchanged for its duration: `renewTime` comes from a
    /// clock that may be minutes off, so it is compared with itself only.
    pub(super) fn judge(&mut self, spec: &LeaseSpec, settings: &LeaseSettings, now: Instant) -> Candidacy {
        let since = match &self.0 {
            Some((seen, since)) if seen == spec => *since,
            _ => {
                self.0 = Some((spec.clone(), now));
                now
            }
        };
        candidacy(spec, settings, since, now)
    }

    /// When we may take the Lease, if its holder does not renew it.
    pub(super) fn expires(&self, settings: &LeaseSettings) -> Option<Instant> {
        let (spec, since) = self.0.as_ref()?;
        since.checked_add(takeover_delay(spec, settings))
    }

    /// Decides about a Lease that is gone. Deleting it does not stop its holder, so a candidate that knew the holder
    /// waits as usual.
    pub(super) fn judge_missing(&self, settings: &LeaseSettings, now: Instant) -> Candidacy {
        self.0.as_ref().map_or(Candidacy::Ours, |(spec, since)| {
            candidacy(spec, settings, *since, now)
        })
    }
}

fn candidacy(spec: &LeaseSpec, settings: &LeaseSettings, since: Instant, now: Instant) -> Candidacy {
    match spec.holder_identity.as_deref() {
        None | Some("") => Candidacy::Ours,
        Some(holder) if holder == settings.identity.as_str() => Candidacy::Ours,
        Some(_) if now >= since + takeover_delay(spec, settings) => Candidacy::Ours,
        Some(holder) => Candidacy::HeldBy(holder.to_owned()),
    }
}

/// The holder's own lease duration counts, not ours: it stops by its own deadline.
fn takeover_delay(spec: &LeaseSpec, settings: &LeaseSettings) -> Duration {
    spec.lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(settings.timings.lease_duration(), Duration::from_secs)
}

/// The Lease with us as the holder: renewed if we were the holder, taken over if not.
pub(super) fn held(before: Option<&LeaseSpec>, settings: &LeaseSettings, now: Timestamp) -> LeaseSpec {
    let before = before.cloned().unwrap_or_default();
    let renewed = before.holder_identity.as_deref() == Some(settings.identity.as_str());
    let transitions = before
        .lease_transitions
        .map_or(0, |n| if renewed { n } else { n.saturating_add(1) });
    LeaseSpec {
        holder_identity: Some(settings.identity.as_str().to_owned()),
        lease_duration_seconds: Some(settings.timings.lease_seconds()),
        acquire_time: before
            .acquire_time
            .clone()
            .filter(|_| renewed)
            .or(Some(MicroTime(now))),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(transitions),
        ..before
    }
}

/// The Lease without a holder, so that the next one need not wait.
pub(super) fn released(before: &LeaseSpec, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        // The minimum that the API accepts; the Lease expires at once in any case.
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(now)),
        ..before.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::settings::Identity, *};

    fn settings() -> LeaseSettings {
        LeaseSettings {
            namespace: "ns".into(),
            name: "lease".into(),
            identity: Identity::new("me"),
            timings: super::super::Timings::default(),
        }
    }

    fn external(renewed: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some("other".into()),
            lease_duration_seconds: Some(15),
            renew_time: Some(MicroTime(renewed.parse().unwrap())),
            lease_transitions: Some(3),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_foreign_lease_expires_by_our_clock_and_not_by_its_timestamp() {
        let (settings, start) = (settings(), Instant::now());
        // By its own timestamp it expired decades ago; the other one has a clock in the future.
        for renewed in ["1990-01-01T00:00:00Z", "2190-01-01T00:00:00Z"] {
            let (mut observed, lease) = (Observed::default(), external(renewed));
            let other = Candidacy::HeldBy("other".into());
            assert_eq!(observed.judge(&lease, &settings, start), other);
            assert_eq!(
                observed.judge(&lease, &settings, start + Duration::from_millis(14_999)),
                other
            );
            assert_eq!(
                observed.judge(&lease, &settings, start + Duration::from_secs(15)),
                Candidacy::Ours
            );
        }
    }

    #[test]
    fn every_renewal_that_we_see_starts_the_wait_again() {
        let (settings, start, mut observed) = (settings(), Instant::now(), Observed::default());
        for i in 0..10 {
            let lease = external(&format!("2026-01-01T00:00:{i:02}Z"));
            let candidacy = observed.judge(&lease, &settings, start + Duration::from_secs(14 * i));
            assert_eq!(candidacy, Candidacy::HeldBy("other".into()));
        }
    }

    #[test]
    fn a_deleted_lease_is_not_free_at_once_for_who_saw_its_holder() {
        let (settings, start, mut observed) = (settings(), Instant::now(), Observed::default());
        assert_eq!(observed.judge_missing(&settings, start), Candidacy::Ours);
        observed.judge(&external("2026-01-01T00:00:00Z"), &settings, start);
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(
            observed.judge_missing(&settings, after(14)),
            Candidacy::HeldBy("other".into())
        );
        assert_eq!(observed.judge_missing(&settings, after(15)), Candidacy::Ours);
    }

    #[test]
    fn the_holder_says_how_long_to_wait() {
        let (settings, start, mut observed) = (settings(), Instant::now(), Observed::default());
        let lease = LeaseSpec {
            lease_duration_seconds: Some(60),
            ..external("2026-01-01T00:00:00Z")
        };
        observed.judge(&lease, &settings, start);
        let candidacy = observed.judge(&lease, &settings, start + Duration::from_secs(59));
        assert_eq!(candidacy, Candidacy::HeldBy("other".into()));
    }

    #[test]
    fn nobodys_lease_is_ours_at_once() {
        let (settings, now) = (settings(), Instant::now());
        for holder in [None, Some(String::new()), Some(settings.identity.to_string())] {
            let lease = LeaseSpec {
                holder_identity: holder,
                ..external("2026-01-01T00:00:00Z")
            };
            assert_eq!(Observed::default().judge(&lease, &settings, now), Candidacy::Ours);
        }
    }

    #[test]
    fn a_takeover_counts_and_a_renewal_keeps_the_acquire_time() {
        let settings = settings();
        let (first, later): (Timestamp, Timestamp) = (
            "2026-01-01T00:00:00Z".parse().unwrap(),
            "2026-01-01T00:00:02Z".parse().unwrap(),
        );
        assert_eq!(held(None, &settings, first).lease_transitions, Some(0));
        let taken = held(Some(&external("2025-01-01T00:00:00Z")), &settings, first);
        assert_eq!(taken.lease_transitions, Some(4));
        let renewed = held(Some(&taken), &settings, later);
        assert_eq!(renewed.lease_transitions, Some(4));
        assert_eq!(renewed.acquire_time, Some(MicroTime(first)));
        assert_eq!(renewed.renew_time, Some(MicroTime(later)));
        let after = held(Some(&released(&renewed, later)), &settings, later);
        assert_eq!(after.lease_transitions, Some(5));
    }
}
