//! Networks, and who a request comes from when a proxy stands before the server.

use http::HeaderMap;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// The header in which a proxy tells whom it speaks for.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// A list of networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    /// Reads networks (`10.0.0.0/8`) and single addresses, separated by commas or blanks.
    ///
    /// # Errors
    /// The first entry that is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        text.split([',', ' ', '\t'])
            .filter(|entry| !entry.is_empty())
            .map(|entry| {
                let single = || entry.parse::<IpAddr>().map(IpNet::from);
                entry
                    .parse::<IpNet>()
                    .or_else(|_| single())
                    .map_err(|_| entry.to_owned())
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether an address lies in one of them.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Who a request comes from, where these are the trusted proxies: the peer, or the nearest hop that is no trusted proxy.
    ///
    /// What a trusted proxy appended is believed; what stands before it was written by whoever it names, and is not.
    #[must_use]
    pub fn remote_addr(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut nearest = peer.to_canonical();
        let lines: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
        let hops = lines
            .iter()
            .rev()
            .flat_map(|line| line.as_bytes().rsplit(|b| *b == b','));
        for hop in hops {
            if !self.contains(nearest) {
                break;
            }
            match std::str::from_utf8(hop).ok().and_then(hop_address) {
                Some(address) => nearest = address.to_canonical(),
                None => break,
            }
        }
        nearest
    }
}

/// An address as proxies write it: bare, with a port, or in brackets.
fn hop_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    text.parse::<IpAddr>()
        .ok()
        .or_else(|| text.parse::<SocketAddr>().ok().map(|a| a.ip()))
        .or_else(|| text.strip_prefix('[')?.strip_suffix(']')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn seen(trusted: &str, peer: &str, lines: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_static(line));
        }
        let trusted = Networks::parse(trusted).expect("networks");
        trusted
            .remote_addr(peer.parse().expect("peer"), &headers)
            .to_string()
    }

    // check: AUDIT-7
    #[test]
    fn forwarded_for_counts_only_from_a_trusted_proxy() {
        assert_eq!(seen("", "10.0.0.1", &["1.2.3.4"]), "10.0.0.1");
        assert_eq!(seen("10.0.0.0/8", "192.0.2.1", &["1.2.3.4"]), "192.0.2.1");
        assert_eq!(seen("10.0.0.0/8", "10.0.0.1", &["1.2.3.4"]), "1.2.3.4");
        assert_eq!(seen("10.0.0.0/8", "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(
            seen("10.0.0.0/8", "::ffff:10.0.0.1", &["1.2.3.4:77"]),
            "1.2.3.4"
        );
        assert_eq!(seen("::1", "::1", &["[2001:db8::1]:443"]), "2001:db8::1");
    }

    // check: AUDIT-7
    #[test]
    fn the_nearest_hop_that_is_no_proxy_counts_whatever_stands_before_it() {
        let trusted = "10.0.0.0/8";
        assert_eq!(
            seen(trusted, "10.0.0.1", &["6.6.6.6, 1.2.3.4, 10.0.0.2"]),
            "1.2.3.4"
        );
        assert_eq!(
            seen(trusted, "10.0.0.1", &["6.6.6.6", "1.2.3.4"]),
            "1.2.3.4"
        );
        assert_eq!(
            seen(trusted, "10.0.0.1", &["1.2.3.4, nonsense, 10.0.0.2"]),
            "10.0.0.2"
        );
        assert_eq!(
            seen(trusted, "10.0.0.1", &["10.0.0.3, 10.0.0.2"]),
            "10.0.0.3"
        );
    }

    #[test]
    fn a_list_takes_networks_and_single_addresses() {
        let all = Networks::parse("10.0.0.0/8, 192.168.1.7 fd00::/8").expect("networks");
        for (address, inside) in [
            ("10.255.0.1", true),
            ("192.168.1.7", true),
            ("192.168.1.8", false),
            ("fd00::1", true),
            ("fe80::1", false),
        ] {
            assert_eq!(
                all.contains(address.parse().expect("address")),
                inside,
                "{address}"
            );
        }
        assert_eq!(Networks::parse("10.0.0.0/8,x"), Err("x".to_owned()));
    }
}
