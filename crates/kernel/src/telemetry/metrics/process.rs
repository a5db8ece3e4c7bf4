//! Memory and CPU of this process, read from `/proc` at each scrape; absent on systems without it.

use std::fs;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// The unit of CPU time in `/proc/self/stat`: Linux fixes it for user space on every architecture we build for.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(super) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if let Some(bytes) = fs::read_to_string("/proc/self/status")
            .ok()
            .as_deref()
            .and_then(resident_bytes)
        {
            let help = "Resident memory size in bytes.";
            let metric =
                encoder.encode_descriptor("process_resident_memory_bytes", help, None, MetricType::Gauge)?;
            ConstGauge::new(bytes).encode(metric)?;
        }
        if let Some(seconds) = fs::read_to_string("/proc/self/stat")
            .ok()
            .as_deref()
            .and_then(cpu_seconds)
        {
            let help = "User and system CPU time spent in seconds.";
            let metric = encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?;
            ConstCounter::new(seconds).encode(metric)?;
        }
        Ok(())
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kib * 1024)
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    // The second field is the command in parentheses, which may itself contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u32>);
    let (user, system) = (times.next()?.ok()?, times.next()?.ok()?);
    Some((f64::from(user) + f64::from(system)) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(
            resident_bytes("Name:\tx\nVmRSS:\t    1234 kB\nThreads:\t1\n"),
            Some(1234 * 1024)
        );
        assert_eq!(resident_bytes("Name:\tx\n"), None);
    }

    #[test]
    fn a_command_with_parentheses_does_not_shift_the_fields() {
        let stat = "1 (a) b) S 0 1 1 0 -1 4194560 9 9 9 9 150 50 0 0 20 0";
        assert_eq!(cpu_seconds(stat), Some(2.0));
    }
}
