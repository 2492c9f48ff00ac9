//! Which addresses may be connected to: those that are globally routable, and what an operator has opened.
//!
//! An address is judged by what it leads to. One of IPv6 that carries one of IPv4 is refused unless both may
//! be connected to, because a translator on the way unwraps it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;

/// What is not globally routable of IPv4, as IANA's registry of special-purpose addresses has it.
const NOT_PUBLIC_V4: [Ipv4Net; 17] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
    v4([255, 255, 255, 255], 32),
    // It looks public, and is a cloud's own service on each of its machines.
    v4([168, 63, 129, 16], 32),
];

/// What of IPv6 is given out to be routed globally; all else is something special.
const PUBLIC_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// What is something special all the same: protocol assignments with Teredo among them, documentation,
/// 6to4, documentation again.
const NOT_PUBLIC_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    v6([0x2001, 0x0db8, 0, 0, 0, 0, 0, 0], 32),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

const fn v4(octets: [u8; 4], bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::from_octets(octets), bits)
}

const fn v6(segments: [u16; 8], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::from_segments(segments), bits)
}

/// A network that an operator opens on purpose, such as `10.1.0.0/16`.
///
/// Opening `64:ff9b::/96`, or a network within `64:ff9b:1::/48`, says that there is a NAT64 behind it: the
/// addresses of IPv4 that it leads to have to be permitted besides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Network(IpNet);

/// Why a text is no network that can be opened.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum NetworkError {
    /// It is no address with a number of bits.
    #[error("not a network such as 10.1.0.0/16")]
    Malformed,
    /// It is all there is.
    #[error("too wide: it is every address")]
    TooWide,
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let network: IpNet = text.parse().map_err(|_| NetworkError::Malformed)?;
        match network.prefix_len() {
            0 => Err(NetworkError::TooWide),
            _ => Ok(Self(network)),
        }
    }
}

/// The rule by which every address is judged before it is connected to.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses(Vec<Network>);

impl Addresses {
    /// The rule, with what an operator has opened.
    pub(super) fn new(opened: Vec<Network>) -> Self {
        Self(opened)
    }

    /// Whether `address` may be connected to.
    pub(super) fn permit(&self, address: IpAddr) -> bool {
        // One of IPv4 that is written as one of IPv6 is the former to every system.
        let address = address.to_canonical();
        let opened = self.0.iter().any(|network| network.0.contains(&address));
        match address {
            IpAddr::V4(address) => opened || is_public_v4(address),
            IpAddr::V6(address) => {
                (opened || is_public_v6(address))
                    && carried(address).is_none_or(|carried| self.permit(carried.into()))
            }
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|net| net.contains(&address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    PUBLIC_V6.contains(&address) && !NOT_PUBLIC_V6.iter().any(|net| net.contains(&address))
}

/// The address of IPv4 that a translator on the way would find in one of IPv6.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        // The unspecified address and the loopback are nothing else.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
        // Teredo writes its client's address upside down.
        [0x2001, 0, _, _, _, _, high, low] => (!high, !low),
        // 6to4 has it in front; v4-compatible and v4-translated (SIIT) addresses, NAT64, a NAT64 of a site's
        // own and ISATAP have it at the end.
        [0x2002, high, low, ..]
        | [0, 0, 0, 0, 0 | 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [_, _, _, _, 0 | 0x0200, 0x5efe, high, low] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from_bits(
        (u32::from(high) << 16) | u32::from(low),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(opened: &[&str], address: &str) -> bool {
        let opened = opened.iter().map(|it| it.parse().expect("a network"));
        let address = address.parse().expect("an address");
        Addresses::new(opened.collect()).permit(address)
    }

    #[test]
    fn public_addresses_are_permitted() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2606:4700:4700::1111",
            "2a00:1450:4001:82a::200e",
            // An interface that was named by ISATAP, of a public address.
            "2a00:1450:4001:82a::5efe:808:808",
        ] {
            assert!(permits(&[], address), "{address}");
        }
    }

    #[test]
    fn an_opened_network_is_permitted_and_its_neighbours_are_not() {
        assert!(permits(&["10.1.0.0/16"], "10.1.255.255"));
        assert!(permits(&["10.1.0.0/16"], "::ffff:10.1.0.1"));
        assert!(!permits(&["10.1.0.0/16"], "10.2.0.0"));
        assert!(permits(&["::1/128"], "::1"));
        assert!(!permits(&["::1/128"], "127.0.0.1"));
        assert!(permits(&["fd00::/8"], "fd00:ec2::254"));
    }

    #[test]
    fn what_an_opened_network_carries_is_judged_too() {
        assert!(permits(&["64:ff9b::/96"], "64:ff9b::808:808"));
        assert!(!permits(&["64:ff9b::/96"], "64:ff9b::a9fe:a9fe"));
        assert!(!permits(&["64:ff9b:1::/48"], "64:ff9b:1::7f00:1"));
        assert!(!permits(&["2002::/16"], "2002:7f00:1::"));
        assert!(!permits(
            &["2001::/32"],
            "2001:0:4136:e378:8000:63bf:80ff:fffe"
        ));
        assert!(!permits(&["fe80::/10"], "fe80::5efe:a00:1"));
        assert!(permits(&["fe80::/10", "10.0.0.0/8"], "fe80::5efe:a00:1"));
    }

    #[test]
    fn a_network_is_written_with_its_bits_and_is_not_everything() {
        for (text, error) in [
            ("10.1.0.0", NetworkError::Malformed),
            ("10.1.0.0/33", NetworkError::Malformed),
            ("lan/8", NetworkError::Malformed),
            ("0.0.0.0/0", NetworkError::TooWide),
            ("::/0", NetworkError::TooWide),
        ] {
            assert_eq!(text.parse::<Network>(), Err(error), "{text}");
        }
    }
}
