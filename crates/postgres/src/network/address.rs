//! Addresses: networks of them, and those that belong to a pod and its node.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An IPv4 address in IPv6 notation is treated as the IPv4 address.
pub(super) fn unmapped(address: IpAddr) -> IpAddr {
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
pub(super) fn is_own(address: IpAddr) -> bool {
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
}
