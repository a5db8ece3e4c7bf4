//! The server's clock and random numbers. Tests control both: the time follows tokio's clock, which a test may pause,
//! and names and uids come from a seed.

use jiff::Timestamp;
use parking_lot::Mutex;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::time::Instant;

/// Letters of generated names, without vowels, so that they do not form words.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

#[derive(Debug)]
pub(crate) struct Clock {
    wall: Timestamp,
    start: Instant,
    random: Mutex<StdRng>,
}

impl Clock {
    pub(crate) fn new(seed: Option<u64>, wall: Option<Timestamp>) -> Self {
        let random = seed.map_or_else(StdRng::from_os_rng, StdRng::seed_from_u64);
        Self {
            wall: wall.unwrap_or_else(Timestamp::now),
            start: Instant::now(),
            random: Mutex::new(random),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.wall.checked_add(self.start.elapsed()).unwrap_or(self.wall)
    }

    /// The current time in seconds, in the format of object metadata.
    pub(crate) fn seconds(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    pub(crate) fn uid(&self) -> String {
        let mut bytes: u128 = self.random.lock().random();
        bytes = (bytes & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bytes:032x}");
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        format!(
            "{}-{}-{}-{}-{}",
            part(0, 8),
            part(8, 12),
            part(12, 16),
            part(16, 20),
            part(20, 32)
        )
    }

    /// A suffix for `generateName` and for pods.
    pub(crate) fn suffix(&self, length: usize) -> String {
        let mut random = self.random.lock();
        (0..length)
            .filter_map(|_| NAME_LETTERS.get(random.random_range(0..NAME_LETTERS.len())))
            .map(|letter| char::from(*letter))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_names_and_uids() {
        let (a, b) = (Clock::new(Some(7), None), Clock::new(Some(7), None));
        assert_eq!(a.uid(), b.uid());
        assert_eq!(a.suffix(5), b.suffix(5));
        let uid = a.uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
    }
}
