//! The time of day and random numbers.
//!
//! Everything in the kernel takes them from here, so that a simulation can control both. It does so for its thread,
//! like tokio's paused clock: a run on one thread then depends only on its seed. Everywhere else they come from the
//! system.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::{CryptoRng, Rng as _, SeedableRng as _};
use tokio::time::Instant;

thread_local! {
    static SCRIPT: RefCell<Option<Script>> = const { RefCell::new(None) };
}

struct Script {
    /// The time of day at `since`.
    wall: Timestamp,
    since: Instant,
    random: StdRng,
}

/// The time of day.
pub fn now() -> Timestamp {
    scripted(|script| {
        let passed = SignedDuration::try_from(script.since.elapsed()).unwrap_or(SignedDuration::MAX);
        script.wall.saturating_add(passed).unwrap_or(script.wall)
    })
    .unwrap_or_else(Timestamp::now)
}

/// A random number between 0 and 1.
pub fn fraction() -> f64 {
    scripted(|script| script.random.random()).unwrap_or_else(rand::random)
}

/// 64 random bits, for names that must differ. Not for secrets.
pub fn bits() -> u64 {
    scripted(|script| script.random.random()).unwrap_or_else(rand::random)
}

/// A source of random numbers that is fit for secrets.
pub fn random() -> Box<dyn CryptoRng> {
    match scripted(|script| StdRng::seed_from_u64(script.random.random())) {
        Some(scripted) => Box::new(scripted),
        None => Box::new(rand::rng()),
    }
}

/// Runs work that would hold up other tasks on a thread for such work. A simulation has only one thread. `None` if the
/// work panicked.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if scripted(|_| ()).is_some() {
        return Some(work());
    }
    tokio::task::spawn_blocking(work).await.ok()
}

fn scripted<T>(take: impl FnOnce(&mut Script) -> T) -> Option<T> {
    SCRIPT.with_borrow_mut(|script| script.as_mut().map(take))
}

/// While this value lives, the time of day and the random numbers of this thread are scripted: the clock starts at a
/// given time and follows tokio's, and random numbers come from a seed.
#[must_use = "the script ends when this is dropped"]
pub struct Scripted {
    /// The value belongs to its thread.
    thread: PhantomData<Rc<()>>,
}

impl Scripted {
    /// Starts a script for this thread, within a tokio runtime.
    pub fn begin(wall: Timestamp, seed: u64) -> Self {
        let script = Script {
            wall,
            since: Instant::now(),
            random: StdRng::seed_from_u64(seed),
        };
        SCRIPT.set(Some(script));
        Self { thread: PhantomData }
    }

    /// Sets the clock forward or back.
    pub fn shift(&self, by: SignedDuration) {
        let Self { thread: PhantomData } = self;
        scripted(|script| script.wall = script.wall.saturating_add(by).unwrap_or(script.wall));
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        SCRIPT.set(None);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_seed_decides_and_the_clock_follows_tokio() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let first = {
            let script = Scripted::begin(start, 7);
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert_eq!(now().to_string(), "2026-01-01T00:00:05Z");
            script.shift(SignedDuration::from_hours(-1));
            assert_eq!(now().to_string(), "2025-12-31T23:00:05Z");
            (bits(), fraction())
        };
        let _script = Scripted::begin(start, 7);
        assert_eq!(first, (bits(), fraction()));
    }

    #[test]
    fn without_a_script_the_system_decides() {
        assert!(now() > "2026-01-01T00:00:00Z".parse().unwrap());
        assert_ne!(bits(), bits());
        assert!((0.0..1.0).contains(&fraction()));
    }
}
