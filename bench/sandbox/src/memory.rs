//! The memory of a server's processes, from the kernel.

use std::collections::BTreeSet;
use std::fs;

/// Kibibytes of all descendant processes.
pub(crate) fn of_descendants() -> u64 {
    let all: Vec<(u32, u32)> = fs::read_dir("/proc")
        .expect("Linux")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, number(pid, "PPid:")?)))
        .collect();
    let mut family = BTreeSet::from([std::process::id()]);
    loop {
        let known = family.len();
        family.extend(
            all.iter()
                .filter(|(_, parent)| family.contains(parent))
                .map(|(pid, _)| *pid)
                .collect::<Vec<_>>(),
        );
        if family.len() == known {
            break;
        }
    }
    family.remove(&std::process::id());
    family
        .iter()
        .filter_map(|pid| number::<u64>(*pid, "VmRSS:"))
        .sum()
}

fn number<N: std::str::FromStr>(pid: u32, field: &str) -> Option<N> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}
