//! The addresses that an object may make the operator connect to.
//!
//! An operator in a pod has a network of its own: sidecars on the loopback address, the node's metadata service on a
//! link-local one, Unix sockets of its file system, the API server. The author of an object must not reach them through
//! the operator. So the operator checks an address after name resolution, and connects to exactly the address that it
//! checked. `--allow-network` allows more.
//!
//! Outside of a pod, on a developer's machine and in the sandbox, all addresses are allowed.

mod address;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::lookup_host;

pub use self::address::{Network, NetworkError};
use self::address::{is_own, unmapped};
use crate::dialer::{Dialer, Wire};

/// Maximum number of addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

/// The allowed addresses. Clones share them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedNetworks(Option<Arc<Rules>>);

#[derive(Debug, PartialEq, Eq)]
struct Rules {
    allowed: Vec<Network>,
    /// The API server, which trusts the operator's network more than a tenant's.
    closed: Vec<IpAddr>,
    /// Names of the API server, resolved with each connection: their addresses can change.
    closed_names: Vec<String>,
}

impl AllowedNetworks {
    /// All addresses: the machine belongs to the person who runs the program.
    pub const fn everything() -> Self {
        Self(None)
    }

    /// The addresses that an operator in a pod may use: all except its own pod, its node and the API server at
    /// `closed`, unless a network in `allowed` contains them.
    pub fn in_pod(allowed: Vec<Network>, closed: Vec<IpAddr>) -> Self {
        Self::closing(allowed, closed, Vec::new())
    }

    fn closing(allowed: Vec<Network>, closed: Vec<IpAddr>, closed_names: Vec<String>) -> Self {
        let closed = closed.into_iter().map(unmapped).collect();
        Self(Some(Arc::new(Rules {
            allowed,
            closed,
            closed_names,
        })))
    }

    /// From the environment that Kubernetes sets in each container: in a pod [`Self::in_pod`], elsewhere all addresses.
    pub fn detect(allowed: Vec<Network>) -> Self {
        let api_server = std::env::var("KUBERNETES_SERVICE_HOST").ok();
        let account = std::path::Path::new("/var/run/secrets/kubernetes.io/serviceaccount/token");
        if api_server.is_none() && !account.exists() {
            return Self::everything();
        }
        let (closed, closed_names) = of_api_server(api_server.as_deref());
        Self::closing(allowed, closed, closed_names)
    }

    /// Whether Unix sockets are allowed.
    pub(crate) fn allows_sockets(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this address is allowed.
    pub fn allows(&self, address: IpAddr) -> bool {
        let Some(rules) = &self.0 else {
            return true;
        };
        let address = unmapped(address);
        rules.opens(address) || !(is_own(address) || rules.closed.contains(&address))
    }

    /// Resolves a name and connects to the first of its addresses that answers. Each is checked before anything is sent
    /// to it.
    pub async fn connect(
        &self,
        host: &str,
        port: u16,
        dialer: &Dialer,
    ) -> Result<Box<dyn Wire>, ConnectError> {
        let addresses = self.resolve(host, port).await?;
        let mut last = None;
        for address in addresses {
            match dialer.dial(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(unknown, ConnectError::Io))
    }

    /// Whether a name leads to an address that is not allowed. A name that this machine cannot resolve leads nowhere from
    /// here.
    pub async fn forbids(&self, host: &str, port: u16) -> bool {
        self.0.is_some() && matches!(self.resolve(host, port).await, Err(ConnectError::Closed))
    }

    /// The addresses of a name, if all of them are allowed. One forbidden address forbids the others, too: a name with
    /// both kinds is probably an attack.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        let found = lookup_host((host, port)).await.map_err(ConnectError::Io)?;
        let addresses: Vec<_> = found.take(MAX_ADDRESSES).collect();
        if addresses.iter().any(|address| !self.allows(address.ip())) || self.names_any(&addresses).await {
            return Err(ConnectError::Closed);
        }
        Ok(addresses)
    }

    /// Whether a closed name leads to one of these addresses, and no network opens it.
    async fn names_any(&self, addresses: &[SocketAddr]) -> bool {
        let Some(rules) = &self.0 else {
            return false;
        };
        for name in &rules.closed_names {
            // A name without an address closes nothing: not every cluster has both names.
            let Ok(found) = lookup_host((name.as_str(), 0)).await else {
                continue;
            };
            let closed: Vec<_> = found.map(|found| unmapped(found.ip())).collect();
            let mut addresses = addresses.iter().map(|address| unmapped(address.ip()));
            if addresses.any(|address| closed.contains(&address) && !rules.opens(address)) {
                return true;
            }
        }
        false
    }
}

impl Rules {
    fn opens(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|network| network.contains(address))
    }
}

/// The addresses and names of the API server, from the host that Kubernetes sets in each container. That is the
/// Service's address, except on platforms that set a public name there: then the Service has a name of its own.
fn of_api_server(host: Option<&str>) -> (Vec<IpAddr>, Vec<String>) {
    const SERVICE: &str = "kubernetes.default.svc";
    match host.map(|host| (host, host.parse())) {
        Some((_, Ok(address))) => (vec![address], Vec::new()),
        Some((name, Err(_))) => (Vec::new(), vec![name.to_owned(), SERVICE.to_owned()]),
        None => (Vec::new(), vec![SERVICE.to_owned()]),
    }
}

fn unknown() -> ConnectError {
    ConnectError::Io(io::Error::new(io::ErrorKind::NotFound, "the name has no address"))
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address belongs to the operator's own network.
    #[error(
        "the host leads to an address that the operator does not connect to (its own pod, its node or the API \
         server); the operator's --allow-network opens it"
    )]
    Closed,
    /// The network returned an error.
    #[error(transparent)]
    Io(io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(allowed: &[&str]) -> AllowedNetworks {
        let allowed = allowed.iter().map(|text| text.parse().unwrap()).collect();
        AllowedNetworks::in_pod(allowed, vec!["10.96.0.1".parse().unwrap()])
    }

    const OWN: &[&str] = &[
        "127.0.0.1",
        "127.8.9.10",
        "0.0.0.0",
        "0.1.2.3",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "10.96.0.1",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:10.96.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "fe80::1",
        "ff02::1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "::ffff:168.63.129.16",
        "fd00:ec2::254",
        "fd20:ce::254",
    ];

    #[test]
    fn a_pod_keeps_to_others() {
        let closed = networks(&[]);
        for address in OWN {
            assert!(!closed.allows(address.parse().unwrap()), "{address}");
            assert!(
                AllowedNetworks::everything().allows(address.parse().unwrap()),
                "{address}"
            );
        }
        for address in [
            "10.0.0.1",
            "100.100.100.201",
            "192.168.1.1",
            "8.8.8.8",
            "fd00::1",
            "2001:db8::1",
        ] {
            assert!(closed.allows(address.parse().unwrap()), "{address}");
        }
        assert!(!closed.allows_sockets() && AllowedNetworks::everything().allows_sockets());
    }

    #[test]
    fn networks_open_more() {
        let open = networks(&["127.0.0.0/8", "fe80::/10"]);
        for (address, allowed) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("fe80::1", true),
            ("::1", false),
            ("169.254.169.254", false),
        ] {
            assert_eq!(open.allows(address.parse().unwrap()), allowed, "{address}");
        }
        assert!(networks(&["0.0.0.0/0"]).allows("10.96.0.1".parse().unwrap()));
    }

    #[test]
    fn the_api_server_is_known_by_address_or_by_name() {
        let known = |host| {
            let (addresses, names) = of_api_server(host);
            let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            (addresses.join(" "), names.join(" "))
        };
        assert_eq!(known(Some("10.96.0.1")), ("10.96.0.1".into(), String::new()));
        assert_eq!(known(Some("fd00::1")), ("fd00::1".into(), String::new()));
        let named = (String::new(), "k8s.example.com kubernetes.default.svc".to_owned());
        assert_eq!(known(Some("k8s.example.com")), named);
        assert_eq!(known(None), (String::new(), "kubernetes.default.svc".into()));
    }

    /// An API server that is known by a name only: its addresses are closed under every name.
    #[tokio::test]
    async fn what_a_closed_name_leads_to_is_closed() {
        let closing = |allowed: &[&str]| {
            let allowed = allowed.iter().map(|text| text.parse().unwrap()).collect();
            let names = vec!["no-such-host.invalid".to_owned(), "192.0.2.7".to_owned()];
            AllowedNetworks::closing(allowed, Vec::new(), names)
        };
        for host in ["192.0.2.7", "::ffff:192.0.2.7"] {
            let error = closing(&[]).resolve(host, 443).await.unwrap_err();
            assert!(matches!(error, ConnectError::Closed), "{host}");
        }
        closing(&[]).resolve("192.0.2.8", 443).await.unwrap();
        closing(&["192.0.2.0/24"])
            .resolve("192.0.2.7", 443)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn a_name_is_judged_by_where_it_leads() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["localhost", "127.0.0.1"] {
            let refused = networks(&[]).connect(host, port, &Dialer::default()).await;
            assert!(matches!(refused, Err(ConnectError::Closed)), "{host}");
        }
        networks(&["127.0.0.0/8", "::1"])
            .connect("localhost", port, &Dialer::default())
            .await
            .unwrap();
    }
}
