//! The progress of a test binary, from the output of the standard test harness.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// The harness prints this once for a slow test, after this time. It does not when tests run one at a time; then it
/// prints a test's name before it runs.
const SLOW: (&str, Duration) = (" has been running for over 60 seconds", Duration::from_mins(1));

/// The progress of a running test binary.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Tests that need not run again: passed or ignored.
    done: BTreeSet<String>,
    /// Tests that the harness reported as slow, with their start time.
    slow: BTreeMap<String, Instant>,
    /// The output since the last line feed.
    line: String,
    heard: Instant,
}

impl Progress {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            done: BTreeSet::new(),
            slow: BTreeMap::new(),
            line: String::new(),
            heard: now,
        }
    }

    /// Processes output of the binary.
    pub(crate) fn read(&mut self, bytes: &[u8], now: Instant) {
        self.heard = now;
        self.line.push_str(&String::from_utf8_lossy(bytes));
        while let Some((line, rest)) = self.line.split_once('\n') {
            let (line, rest) = (line.to_owned(), rest.to_owned());
            self.line = rest;
            self.read_line(&line, now);
        }
    }

    fn read_line(&mut self, line: &str, now: Instant) {
        // Output of a test's child processes may precede it on the same line.
        self.slow
            .retain(|name, _| !line.contains(&format!("test {name} ... ")));
        let Some(said) = line.strip_prefix("test ") else {
            return;
        };
        if let Some(name) = said.strip_suffix(SLOW.0) {
            let started = now.checked_sub(SLOW.1).unwrap_or(now);
            self.slow.insert(name.to_owned(), started);
        } else if let Some((name, result)) = said.split_once(" ... ")
            && (result.starts_with("ok") || result.starts_with("ignored"))
        {
            self.done.insert(plain(name).to_owned());
        }
    }

    /// Whether a test has passed or is ignored.
    pub(crate) fn is_done(&self, name: &str) -> bool {
        self.done.contains(name)
    }

    /// The tests that exceed the timeout. `Some` of an empty list: the binary has printed nothing for that long, and no
    /// test is known to run.
    pub(crate) fn overdue(&self, deadline: Duration, now: Instant) -> Option<Vec<String>> {
        let is_over = |since: Instant| now.duration_since(since) >= deadline;
        let slow = self.slow.iter().filter(|(_, started)| is_over(**started));
        let mut names: Vec<String> = slow.map(|(name, _)| name.clone()).collect();
        let is_silent = is_over(self.heard);
        if is_silent
            && let Some(name) = self
                .line
                .strip_prefix("test ")
                .and_then(|it| it.strip_suffix(" ... "))
        {
            names.push(plain(name).to_owned());
        }
        (is_silent || !names.is_empty()).then_some(names)
    }
}

/// The name without the text that the harness appends.
fn plain(name: &str) -> &str {
    name.strip_suffix(" - should panic").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Progress;

    const DEADLINE: Duration = Duration::from_mins(10);

    /// The progress after these lines, each a minute after the previous one, a minute after the last.
    fn after(printed: &[&str]) -> (Progress, Instant) {
        let mut now = Instant::now();
        let mut progress = Progress::new(now);
        for text in printed {
            now += Duration::from_mins(1);
            progress.read(text.as_bytes(), now);
        }
        (progress, now + Duration::from_mins(1))
    }

    #[test]
    fn a_slow_test_is_overdue_by_its_own_time() {
        let slow = "test a::hangs has been running for over 60 seconds\n";
        let others = ["test a::works ... ok\n"; 8];
        let (progress, now) = after(&[&[slow], &others[..]].concat());
        let overdue = progress.overdue(DEADLINE, now).unwrap();
        assert_eq!(overdue, ["a::hangs"], "although others end all the while");
        assert!(progress.is_done("a::works"));
        let (progress, now) = after(&[&[slow], &others[1..]].concat());
        assert_eq!(progress.overdue(DEADLINE, now), None);
    }

    #[test]
    fn a_slow_test_that_ends_is_not_overdue() {
        let mut printed = vec!["test slow has been running for over 60 seconds\n"];
        printed.push("a child says: test slow ... FAILED\n");
        printed.extend(["test other ... ok\n"; 9]);
        let (progress, now) = after(&printed);
        assert_eq!(progress.overdue(DEADLINE, now), None);
        assert!(!progress.is_done("slow"), "it failed: a second run shows why");
    }

    #[test]
    fn one_by_one_the_name_stands_before_the_silence() {
        let (progress, now) = after(&["\nrunning 2 tests\ntest a - should panic ... ok\ntest b ... "]);
        assert!(progress.is_done("a"));
        assert_eq!(progress.overdue(DEADLINE, now), None);
        let later = now + DEADLINE;
        assert_eq!(progress.overdue(DEADLINE, later), Some(vec!["b".to_owned()]));
    }

    #[test]
    fn silence_without_a_name_is_overdue_too() {
        let (progress, now) = after(&["test result: ok. 2 passed\n"]);
        assert_eq!(progress.overdue(DEADLINE, now + DEADLINE), Some(Vec::new()));
    }
}
