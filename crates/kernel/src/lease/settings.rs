//! Settings of the leader election: the Lease, our identity, and the three durations of the protocol.

use std::{fmt, time::Duration};

/// The Lease and our identity.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease. Replicas that exclude each other share it.
    pub name: String,
    /// Our identity among the replicas.
    pub identity: Identity,
    /// Duration of the Lease and renewal interval.
    pub timings: Timings,
}

/// The holder name that a replica writes into the Lease.
///
/// Two candidates with the same name would take each other's renewals for their own and both lead, so every identity
/// contains a random part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(String);

impl Identity {
    /// A new identity that starts with `name` (the pod's name, so that people see which pod is the leader).
    pub fn new(name: &str) -> Self {
        Self(format!("{name}_{:016x}", crate::ambient::bits()))
    }

    /// The text in `spec.holderIdentity`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The durations of the protocol, validated: retry < renew < lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// Durations that would allow two leaders at once, or none for long.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "lease timings must satisfy retry period < renew deadline < lease duration, and the lease \
     duration must be at least one second, but got {retry_period:?}, {renew_deadline:?}, {lease_duration:?}"
)]
pub struct TimingsError {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

impl Timings {
    /// - `lease_duration`: how long the others wait after the last renewal that they saw.
    /// - `renew_deadline`: how long the leader continues without a renewal. It is shorter, so that the old leader has
    ///   stopped before a new one can start.
    /// - `retry_period`: how often the leader renews and the others check.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, TimingsError> {
        let ordered = Duration::ZERO < retry_period
            && retry_period < renew_deadline
            && renew_deadline < lease_duration
            // The API stores whole seconds.
            && lease_duration >= Duration::from_secs(1)
            && lease_duration.as_secs() < u64::from(i32::MAX.unsigned_abs());
        if ordered {
            Ok(Self {
                lease_duration,
                renew_deadline,
                retry_period,
            })
        } else {
            Err(TimingsError {
                lease_duration,
                renew_deadline,
                retry_period,
            })
        }
    }

    /// How long a candidate waits for a renewal before it takes over.
    pub fn lease_duration(self) -> Duration {
        self.lease_duration
    }

    /// How long leadership is valid after a renewal.
    pub fn renew_deadline(self) -> Duration {
        self.renew_deadline
    }

    /// How often the Lease is renewed or checked.
    pub fn retry_period(self) -> Duration {
        self.retry_period
    }

    /// The timeout of one attempt. A third of the deadline, so that after two connections that hang there is still time
    /// for an attempt on a new one.
    pub fn request_timeout(self) -> Duration {
        self.renew_deadline / 3
    }

    /// How long nobody leads after a lost Lease: from the end of the leadership until the Lease can expire.
    pub(super) fn margin(self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline)
    }

    /// The lease duration as the API stores it, rounded up.
    pub(super) fn lease_seconds(self) -> i32 {
        let up = self.lease_duration.as_secs() + u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(up).unwrap_or(i32::MAX)
    }
}

impl Default for Timings {
    /// Shorter than client-go's 15 s and 10 s: when a leader is killed, another one takes over within 15 s. Three
    /// attempts to renew still fit into the deadline.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(10),
            renew_deadline: Duration::from_secs(7),
            retry_period: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_that_allow_two_leaders_are_refused() {
        let s = Duration::from_secs;
        assert!(Timings::new(s(15), s(10), s(2)).is_ok());
        for (lease, renew, retry) in [(10, 10, 2), (15, 16, 2), (15, 10, 10), (15, 10, 0)] {
            assert!(
                Timings::new(s(lease), s(renew), s(retry)).is_err(),
                "{lease} {renew} {retry}"
            );
        }
        assert!(Timings::new(s(1) / 2, s(1) / 4, s(1) / 8).is_err());
    }

    #[test]
    fn part_of_a_second_is_rounded_up() {
        let ms = Duration::from_millis;
        let timings = Timings::new(ms(1_200), ms(800), ms(100)).unwrap();
        assert_eq!(timings.lease_seconds(), 2);
        assert_eq!(Timings::default().lease_seconds(), 10);
    }

    #[test]
    fn no_two_identities_are_equal() {
        assert_ne!(Identity::new("pod-0"), Identity::new("pod-0"));
    }
}
