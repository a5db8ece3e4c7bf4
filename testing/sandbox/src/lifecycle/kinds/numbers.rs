//! Numbers for the addresses and node ports of Services.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use serde_json::Value;

use crate::store::{Store, text};

/// What a server gives to its Services, each once.
#[derive(Debug)]
pub(crate) struct ServiceNumbers {
    addresses: Mutex<Numbers>,
    ports: Mutex<Numbers>,
}

/// The first node port of the range that Kubernetes uses by default.
const FIRST_PORT: u32 = 30_000;

impl Default for ServiceNumbers {
    fn default() -> Self {
        Self {
            // Of 10.96.0.0/16; the first addresses are the cluster's own.
            addresses: Mutex::new(Numbers::new(11, 62_489)),
            ports: Mutex::new(Numbers::new(FIRST_PORT, 2_768)),
        }
    }
}

impl ServiceNumbers {
    /// An address that no Service has.
    pub(super) fn address(&self) -> String {
        let next = self.addresses.lock().take();
        format!("10.96.{}.{}", next / 250, next % 250 + 1)
    }

    /// A node port that no Service has.
    pub(super) fn port(&self) -> u32 {
        self.ports.lock().take()
    }

    /// Notes what the Services of a store have, which an earlier run has kept.
    pub(crate) fn learn(&self, store: &Store) {
        for (_, service) in store.list("/services", None).objects {
            self.note(service.value());
        }
    }

    /// Notes what a Service has.
    pub(super) fn note(&self, service: &Value) {
        self.addresses
            .lock()
            .taken
            .extend(number(text(service, "/spec/clusterIP")));
        let ports = service.pointer("/spec/ports").and_then(Value::as_array);
        let ports = ports.into_iter().flatten();
        let ports = ports.filter_map(|port| u32::try_from(port.get("nodePort")?.as_u64()?).ok());
        self.ports.lock().taken.extend(ports);
    }
}

/// The number of an address of the range; `None` for one that is not given automatically.
fn number(address: &str) -> Option<u32> {
    let (high, low) = address.strip_prefix("10.96.")?.split_once('.')?;
    let (high, low): (u32, u32) = (high.parse().ok()?, low.parse().ok()?);
    Some(high * 250 + low.checked_sub(1).filter(|low| *low < 250)?)
}

/// Numbers of a range, in order, and then again from its beginning.
#[derive(Debug)]
struct Numbers {
    first: u32,
    count: u32,
    next: u32,
    /// Numbers that are in use. They are not given again, also if their Service is gone.
    taken: BTreeSet<u32>,
}

impl Numbers {
    const fn new(first: u32, count: u32) -> Self {
        Self {
            first,
            count,
            next: first,
            taken: BTreeSet::new(),
        }
    }

    /// The next one that is not taken; if all are, any.
    fn take(&mut self) -> u32 {
        for _ in 0..self.count {
            let number = self.next;
            self.next = self.first + (number + 1 - self.first) % self.count;
            if !self.taken.contains(&number) {
                return number;
            }
        }
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_numbers_are_left_out_until_all_are_taken() {
        let mut numbers = Numbers::new(5, 4);
        numbers.taken.extend([6, 99]);
        let given: Vec<u32> = (0..4).map(|_| numbers.take()).collect();
        assert_eq!(given, [5, 7, 8, 5]);
        numbers.taken.extend(5..9);
        assert!((5..9).contains(&numbers.take()));
    }

    #[test]
    fn an_address_is_the_number_that_it_was_made_from() {
        let numbers = ServiceNumbers::default();
        for expected in [11, 12] {
            assert_eq!(number(&numbers.address()), Some(expected));
        }
        assert_eq!(number("10.96.249.250"), Some(62_499));
        for other in ["None", "", "10.97.0.1", "10.96.0.0", "10.96.0.251", "10.96.1"] {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
