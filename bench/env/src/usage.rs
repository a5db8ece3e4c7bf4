//! CPU time and memory of a process, from the kernel.

use std::fs;
use std::time::Duration;

/// The kernel's unit of CPU time (`USER_HZ`), the same on every Linux.
pub(crate) const TICKS_A_SECOND: u64 = 100;
const KIB_A_MIB: f64 = 1024.0;

/// CPU time and memory of a process.
pub struct Usage {
    /// In user and kernel mode, all threads.
    pub cpu: Duration,
    resident_kib: u32,
    file_kib: u32,
    peak_kib: u32,
}

impl Usage {
    /// The usage so far.
    pub fn of(pid: u32) -> Self {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).expect("the operator runs");
        let (stat, status) = (read("stat"), read("status"));
        // The name of the program, in parentheses, may contain anything; the fields follow it.
        let fields = stat.rsplit_once(')').expect("a name in parentheses").1;
        let ticks: u64 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(number::<u64>)
            .sum();
        let kib = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .expect("a line of status");
            number(line.trim_start_matches(':').trim().trim_end_matches(" kB"))
        };
        Self {
            cpu: Duration::from_millis(ticks * 1000 / TICKS_A_SECOND),
            resident_kib: kib("VmRSS"),
            file_kib: kib("RssFile"),
            peak_kib: kib("VmHWM"),
        }
    }

    /// Current memory.
    pub fn resident_mib(&self) -> f64 {
        f64::from(self.resident_kib) / KIB_A_MIB
    }

    /// The part of the current memory that belongs to files: pages of the program and of libraries, which the kernel can
    /// drop and read again. The rest is the program's own data.
    pub fn file_mib(&self) -> f64 {
        f64::from(self.file_kib) / KIB_A_MIB
    }

    /// Maximum memory.
    pub fn peak_mib(&self) -> f64 {
        f64::from(self.peak_kib) / KIB_A_MIB
    }

    /// Both, for a row.
    pub fn memory(&self) -> String {
        let (now, file, most) = (self.resident_mib(), self.file_mib(), self.peak_mib());
        format!("{now:.1} MiB, {file:.1} of it pages of files ({most:.1} MiB at most)")
    }
}

fn number<N: std::str::FromStr>(text: &str) -> N {
    text.parse().ok().expect("a number")
}
