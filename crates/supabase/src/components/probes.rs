//! The probes of a component: startup, liveness and readiness.

use serde_json::{Value, json};

use crate::put;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// A request to a port by name.
    Http { port: &'static str, path: &'static str },
    /// A connection to a port by name.
    Tcp(&'static str),
    /// A command in the container.
    Exec(&'static [&'static str]),
}

/// The three probes. A component that cannot reach its database is not ready, but is not restarted: that would not
/// help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probes {
    /// Whether it can serve requests.
    pub readiness: Probe,
    /// Whether it must be restarted.
    pub liveness: Probe,
    /// Timeout of a start, in seconds.
    pub start: u16,
}

impl Probes {
    /// The same HTTP request for all probes.
    pub(crate) fn http(port: &'static str, path: &'static str, start: u16) -> Self {
        let probe = Probe::Http { port, path };
        Self {
            readiness: probe.clone(),
            liveness: probe,
            start,
        }
    }

    /// The container's three probes.
    pub(crate) fn fields(&self) -> [(&'static str, Value); 3] {
        const EVERY: u16 = 5;
        [
            (
                "startupProbe",
                probe(&self.liveness, EVERY, self.start.div_ceil(EVERY)),
            ),
            ("readinessProbe", probe(&self.readiness, 10, 3)),
            ("livenessProbe", probe(&self.liveness, 15, 4)),
        ]
    }
}

fn probe(probe: &Probe, every: u16, failures: u16) -> Value {
    let mut value = json!({ "periodSeconds": every, "timeoutSeconds": 5, "failureThreshold": failures });
    let (name, action) = match probe {
        Probe::Http { port, path } => ("httpGet", json!({ "port": port, "path": path })),
        Probe::Tcp(port) => ("tcpSocket", json!({ "port": port })),
        Probe::Exec(command) => ("exec", json!({ "command": command })),
    };
    put(&mut value, name, action);
    value
}
