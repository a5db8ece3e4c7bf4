//! What a process has used, as the kernel counts it.

use std::fs;
use std::time::Duration;

/// The kernel's unit of CPU time (`USER_HZ`), the same on every Linux that there is.
const TICKS_A_SECOND: u64 = 100;

/// In user and kernel mode, all threads.
pub(crate) fn cpu(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the operator runs");
    // The name of the program, in parentheses, may contain anything; what follows it is fields.
    let fields = stat.rsplit_once(')').expect("a name in parentheses").1;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 1000 / TICKS_A_SECOND)
}

/// Memory in use.
pub(crate) fn resident_mib(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the operator runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.expect("a line of status").trim().trim_end_matches(" kB");
    f64::from(kib.parse::<u32>().expect("a number")) / 1024.0
}
