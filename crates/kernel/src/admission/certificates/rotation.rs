//! Rotation of certificates. Pure, so tests cover years of it in a moment.
//!
//! A certificate must be trusted before it is presented, and the API server learns of a new CA with a delay. So there
//! are always two: the `current` one, and the `next` one, whose CA is in the bundle from the moment it is created. A
//! rotation makes `next` the current one and adds a new next one; the previous CA stays in the bundle for replicas that
//! have not read the Secret yet. It is one write, and no replica ever serves an untrusted certificate.

use std::time::Duration;

use jiff::Timestamp;

use super::pair::Pair;

/// The content of the Secret.
#[derive(Clone, PartialEq)]
pub(super) struct Stored {
    pub(super) current: Pair,
    pub(super) next: Pair,
    /// CA certificates, oldest first: of the previous pair if there was one, of the current, of the next.
    pub(super) authorities: Vec<String>,
}

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Serve the current certificate.
    Keep,
    /// Make the next one the current one.
    Rotate,
    /// Start over: there is no usable certificate.
    Restart,
}

/// A pair is next for one period, current for one, and still valid for another.
const PERIODS: u32 = 3;

/// Decides from the stored certificates. `every` is the period between rotations.
pub(super) fn step(stored: Option<&Stored>, names: &[String], every: Duration, now: Timestamp) -> Step {
    let Some(Stored { current, next, .. }) = stored else {
        return Step::Restart;
    };
    if !current.is_for(names) || !next.is_for(names) || next.not_after() <= now {
        return Step::Restart;
    }
    if current.not_after() <= now {
        return Step::Rotate;
    }
    // After a long pause of the operator, the next one is as old as the current one, and its successor is new: give the
    // API server time to learn of it.
    let known_since = next.not_after() - every * PERIODS;
    let heard_of = known_since + every / 10 <= now;
    if current.not_after() - every <= now && heard_of {
        Step::Rotate
    } else {
        Step::Keep
    }
}

impl Stored {
    /// The first two pairs. The current one is valid for one period less, because it skips being next.
    pub(super) fn fresh(names: &[String], every: Duration, now: Timestamp) -> Result<Self, rcgen::Error> {
        let (current, authority) = Pair::make(names, now, every * (PERIODS - 1))?;
        let (next, next_authority) = Pair::make(names, now, every * PERIODS)?;
        Ok(Self {
            current,
            next,
            authorities: vec![authority, next_authority],
        })
    }

    /// The next becomes the current one.
    pub(super) fn rotated(
        self,
        names: &[String],
        every: Duration,
        now: Timestamp,
    ) -> Result<Self, rcgen::Error> {
        let (next, authority) = Pair::make(names, now, every * PERIODS)?;
        let keep = self.authorities.len().saturating_sub(2);
        let authorities = self
            .authorities
            .into_iter()
            .skip(keep)
            .chain([authority])
            .collect();
        Ok(Self {
            current: self.next,
            next,
            authorities,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVERY: Duration = Duration::from_hours(30 * 24);

    fn names() -> Vec<String> {
        vec!["stanchion.ns.svc".into()]
    }

    fn advance(stored: Option<Stored>, now: Timestamp) -> (Step, Stored) {
        let step = step(stored.as_ref(), &names(), EVERY, now);
        let stored = match (step, stored) {
            (Step::Keep, Some(stored)) => stored,
            (Step::Rotate, Some(stored)) => stored.rotated(&names(), EVERY, now).unwrap(),
            _ => Stored::fresh(&names(), EVERY, now).unwrap(),
        };
        (step, stored)
    }

    #[test]
    fn it_rotates_once_a_period_and_presents_only_what_was_announced() {
        let start = Timestamp::now();
        let (_, mut stored) = advance(None, start);
        let mut rotations = Vec::new();
        for day in 1..=365_u32 {
            let now = start + Duration::from_hours(24) * day;
            let before = stored.clone();
            let (step, after) = advance(Some(stored), now);
            if step == Step::Rotate {
                rotations.push(day);
                assert!(after.current == before.next);
                let announced = before.authorities.last().unwrap();
                assert_eq!(after.authorities.len(), 3);
                assert!(
                    after.authorities.contains(announced),
                    "the new certificate is trusted already"
                );
                assert!(
                    before
                        .authorities
                        .iter()
                        .rev()
                        .take(2)
                        .all(|old| after.authorities.contains(old)),
                    "the old one is trusted still"
                );
            } else {
                assert_eq!(step, Step::Keep);
                assert!(after == before);
            }
            assert!(after.current.not_after() > now + Duration::from_hours(24));
            stored = after;
        }
        let expected: Vec<u32> = (1..=12).map(|n| n * 30).collect();
        assert_eq!(rotations, expected);
    }

    #[test]
    fn other_names_start_over() {
        let now = Timestamp::now();
        let (_, stored) = advance(None, now);
        assert_eq!(
            step(Some(&stored), &["127.0.0.1".into()], EVERY, now),
            Step::Restart
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// After a pause of any length, the served certificate is valid, and after a few checks nothing changes any
        /// more.
        #[test]
        fn pauses_of_any_length_end_in_rest(days in prop::collection::vec(0_u32..200, 1..6)) {
            let mut now = Timestamp::now();
            let (_, mut stored) = advance(None, now);
            for pause in days {
                now += Duration::from_hours(24) * pause;
                let (_, after) = advance(Some(stored), now);
                prop_assert!(after.current.not_after() > now);
                let (step, again) = advance(Some(after), now);
                prop_assert_eq!(step, Step::Keep);
                stored = again;
            }
        }
    }
}
