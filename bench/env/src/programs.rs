//! CPU time of every program of a bench: the control plane, PostgreSQL, the operator and the bench itself.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::process;
use std::time::Duration;

use crate::row;
use crate::usage::TICKS_A_SECOND;

/// Less than this is not worth a line.
const LEAST: Duration = Duration::from_millis(100);

/// The CPU time so far, by the name of the program. It counts this process and its descendants, also those that have
/// ended since, so that it does not depend on what else runs on the machine.
#[derive(Debug, Default)]
pub struct Programs(BTreeMap<String, Duration>);

impl Programs {
    /// The CPU time so far.
    pub fn now() -> Self {
        let all = fs::read_dir("/proc").expect("the list of processes");
        let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        // A process can end between the list and its file.
        let stats = pids.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok());
        Self::of(process::id(), &stats.collect::<Vec<_>>())
    }

    fn of(root: u32, stats: &[String]) -> Self {
        let found: Vec<Stat> = stats.iter().filter_map(|stat| Stat::parse(stat)).collect();
        let parents: HashMap<u32, u32> = found.iter().map(|stat| (stat.pid, stat.parent)).collect();
        let ancestors = |pid: u32| std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
        let mut programs = BTreeMap::<String, Duration>::new();
        for stat in &found {
            if ancestors(stat.pid).any(|pid| pid == root) {
                // The children of the bench that have ended are not its own work.
                let ended = if stat.pid == root { 0 } else { stat.ended };
                let ticks = stat.own + ended;
                *programs.entry(stat.name.clone()).or_default() +=
                    Duration::from_millis(ticks * 1000 / TICKS_A_SECOND);
            }
        }
        Self(programs)
    }

    /// The CPU time since an earlier moment, the most first.
    pub fn since(&self, before: &Self) -> Vec<(&str, Duration)> {
        let spent = self.0.iter().map(|(name, now)| {
            let before = before.0.get(name).copied().unwrap_or_default();
            (name.as_str(), now.saturating_sub(before))
        });
        let mut spent: Vec<_> = spent.filter(|(_, spent)| *spent >= LEAST).collect();
        spent.sort_by_key(|(_, spent)| std::cmp::Reverse(*spent));
        spent
    }

    /// Prints the CPU time since an earlier moment.
    pub fn print_since(&self, before: &Self) {
        let spent = self.since(before);
        let total: Duration = spent.iter().map(|(_, spent)| *spent).sum();
        row("  CPU of all programs", &format!("{:.1} s", total.as_secs_f64()));
        for (name, spent) in spent {
            row(&format!("    {name}"), &format!("{:.1} s", spent.as_secs_f64()));
        }
    }
}

/// The fields of `/proc/PID/stat` that count.
struct Stat {
    pid: u32,
    parent: u32,
    name: String,
    /// Its own CPU time, in user and kernel mode.
    own: u64,
    /// The CPU time of its children that have ended.
    ended: u64,
}

impl Stat {
    fn parse(line: &str) -> Option<Self> {
        // The name, in parentheses, may contain anything.
        let (head, rest) = line.rsplit_once(')')?;
        let (pid, name) = head.split_once(" (")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            pid: pid.parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            name: name.to_owned(),
            own: ticks(11)? + ticks(12)?,
            ended: ticks(13)? + ticks(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, name: &str, parent: u32, own: u64, ended: u64) -> String {
        format!("{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {own} 0 {ended} 0 20 0")
    }

    #[test]
    fn descendants_count_and_others_do_not() {
        let before = Programs::of(7, &[stat(7, "bench", 1, 100, 0)]);
        let now = Programs::of(
            7,
            &[
                stat(7, "bench", 1, 150, 9000),
                stat(8, "sh", 7, 0, 0),
                stat(9, "postgres", 8, 100, 200),
                stat(10, "postgres", 9, 50, 0),
                stat(11, "a (b) c", 1, 5000, 0),
            ],
        );
        let seconds = |name: &str| {
            let since = now.since(&before);
            let found = since.iter().find(|(program, _)| *program == name);
            found.map(|(_, spent)| spent.as_millis())
        };
        assert_eq!(seconds("postgres"), Some(3500));
        assert_eq!(seconds("bench"), Some(500));
        assert_eq!(seconds("sh"), None);
        assert_eq!(seconds("a (b) c"), None);
    }
}
