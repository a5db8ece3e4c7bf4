//! Names that no other test uses, in this process, in another one, or in an earlier run.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

/// `prefix` followed by lower-case letters and digits: valid in Kubernetes, PostgreSQL and S3.
pub fn name(prefix: &str) -> String {
    // The clock's low bits distinguish runs, the process id distinguishes binaries of a run, the counter distinguishes
    // tests.
    static RUN: LazyLock<u64> = LazyLock::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (u64::from(std::process::id()) << 30) | u64::from(now.subsec_nanos())
    });
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    format!(
        "{prefix}{}{}",
        base36(*RUN),
        base36(COUNTER.fetch_add(1, Ordering::Relaxed))
    )
}

fn base36(mut number: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = Vec::new();
    loop {
        digits.push(char::from(DIGITS[usize::try_from(number % 36).unwrap_or(0)]));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_differ_and_are_plain() {
        let (one, two) = (super::name("db"), super::name("db"));
        assert_ne!(one, two);
        assert!(
            one.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
            "{one}"
        );
        assert!(one.len() < 25, "{one}");
    }
}
