//! How long a message takes.
//!
//! It follows from the seed, from what the message is about, and from how many like it there were. It does not follow
//! from how many *others* there were: when a schedule is shortened, what is left of it takes as long as before.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

pub(super) struct Latency {
    seed: u64,
    seen: Mutex<HashMap<String, u64>>,
}

impl Latency {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            seen: Mutex::default(),
        }
    }

    /// The next delay of messages like this one: mostly a few milliseconds, at times a second or two.
    pub(super) fn next(&self, like: &str) -> Duration {
        let number = {
            let mut seen = self.seen.lock();
            let number = seen.entry(like.to_owned()).or_default();
            *number += 1;
            *number
        };
        // The hasher of the standard library has fixed keys.
        let mut hasher = DefaultHasher::new();
        (self.seed, like, number).hash(&mut hasher);
        let hash = hasher.finish();
        let most = match hash % 16 {
            0 => 2_000,
            1..4 => 300,
            _ => 40,
        };
        Duration::from_millis(1 + (hash >> 8) % most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_does_not_depend_on_other_messages() {
        let (one, two) = (Latency::new(7), Latency::new(7));
        let first = [one.next("a"), one.next("a")];
        let with_others = [two.next("a"), two.next("b"), two.next("c"), two.next("a")];
        assert_eq!(first, [with_others[0], with_others[3]]);
    }
}
