//! The addresses that an object may make the operator connect to.
//!
//! An operator in a pod has a network of its own: sidecars on the loopback address, the node's metadata service on a
//! link-local one, Unix sockets of its file system, the API server. The author of an object must not reach them through
//! the operator. So the operator checks an address after name resolution, and connects to exactly the address that it
//! checked. `--allow-network` allows more.
//!
//! Outside of a pod, on a developer's machine and in the sandbox, all addresses are allowed.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use tokio::net::lookup_host;

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
    pub fn allows_sockets(&self) -> bool {
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

/// An IPv4 address in IPv6 notation is treated as the IPv4 address.
fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => {
            let translated = match v6.segments() {
                // NAT64's well-known prefix has the IPv4 address in its last 32 bits; 6to4 has it after its prefix.
                [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some((high, low)),
                _ => None,
            };
            let embedded = translated.map(|(high, low)| {
                let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
                Ipv4Addr::new(a, b, c, d)
            });
            v6.to_ipv4_mapped()
                .or(embedded)
                .map_or(IpAddr::V6(v6), IpAddr::V4)
        }
        IpAddr::V4(_) => address,
    }
}

/// The pod itself, its node, or an unspecified address.
fn is_own(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_loopback()
                || v4.is_link_local()
                || v4.is_broadcast()
                || v4.is_multicast()
                // "This network": a connection to 0.0.0.0 arrives at the loopback address.
                || v4.octets().first() == Some(&0)
                || is_platform(IpAddr::V4(v4))
        }
        IpAddr::V6(v6) => {
            // ::a.b.c.d is an old notation of an IPv4 address; it includes :: and ::1.
            let compatible = matches!(v6.segments(), [0, 0, 0, 0, 0, 0, ..]);
            compatible || v6.is_unicast_link_local() || v6.is_multicast() || is_platform(IpAddr::V6(v6))
        }
    }
}

/// Services of the node's platform that have no link-local address: they give a node's credentials to everybody who
/// reaches them from the node.
fn is_platform(address: IpAddr) -> bool {
    match address {
        // Alibaba, Azure, and the block that Oracle uses.
        IpAddr::V4(v4) => matches!(
            v4.octets(),
            [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, _]
        ),
        // Amazon, Google.
        IpAddr::V6(v6) => matches!(v6.segments(), [0xfd00, 0xec2, ..] | [0xfd20, 0xce, ..]),
    }
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

/// Addresses with a common prefix: `10.0.0.0/8`, `fd00::/8`, `127.0.0.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Whether it contains the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, unmapped(address)) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (u32::from(network) ^ u32::from(address)).leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (u128::from(network) ^ u128::from(address)).leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().map_err(|_| NetworkError)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.trim().parse().map_err(|_| NetworkError))?;
        if bits > most {
            return Err(NetworkError);
        }
        let network = Self { address, bits };
        // 10.0.0.7/8 is more often a mistake than intended.
        let first = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or_default();
                IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or_default();
                IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
            }
        };
        if first == address {
            Ok(network)
        } else {
            Err(NetworkError)
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The text is not a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a network such as 10.0.0.0/8, fd00::/8 or 127.0.0.1, without bits after the prefix")]
pub struct NetworkError;

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
    fn networks_are_read() {
        for text in ["10.0.0.0/8", "127.0.0.1/32", "fd00::/8", "0.0.0.0/0", "::/0"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        assert_eq!("10.1.2.3".parse::<Network>().unwrap().to_string(), "10.1.2.3/32");
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0.7/8",
            "fd00::1/8",
            "localhost",
            "10.0.0.0/-1",
            "::/129",
        ] {
            assert_eq!(text.parse::<Network>(), Err(NetworkError), "{text}");
        }
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
