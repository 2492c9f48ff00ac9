//! How often: the calls of a key and of a tenant, and keys from one address that open nothing.
//!
//! Each counts in this process alone. What is remembered of one that was quiet for a second is forgotten, and
//! what is remembered of all is bounded.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hango_application::use_cases::Caller;
use hango_domain::{ApiKeyId, TenantId};
use tokio::time::{Instant, sleep};

/// Keys that open nothing, a second and address, before the answer comes late.
const FAILURES: u32 = 10;

/// The latest that it comes.
const LATEST: Duration = Duration::from_secs(10);

/// The most that a [`Pace`] remembers; who finds no room is treated like one who was too fast.
const MOST: usize = 65_536;

/// So few need not be looked through.
const FEW: usize = 1024;

const SECOND: Duration = Duration::from_secs(1);

/// Requests a second, in this process; 0 for any number.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RateLimits {
    /// Of one key.
    pub per_key: u32,
    /// Of all of a tenant's keys.
    pub per_tenant: u32,
}

/// How often callers came.
#[derive(Debug)]
pub struct Rates {
    keys: Option<Pace<ApiKeyId>>,
    tenants: Option<Pace<TenantId>>,
    failures: Pace<IpAddr>,
    notes: Pace<ApiKeyId>,
}

/// Where a request came from: the other end of its connection. What a header says of that is not asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// A caller comes too often.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TooMany {
    /// Whether his refusal goes on record: one a second and key does, so that a flood of calls is not one of
    /// rows.
    pub(crate) noted: bool,
}

impl Rates {
    /// Nobody has come yet.
    #[must_use]
    pub fn new(limits: RateLimits) -> Self {
        Self {
            keys: Pace::at(limits.per_key),
            tenants: Pace::at(limits.per_tenant),
            failures: Pace::new(FAILURES),
            notes: Pace::new(1),
        }
    }

    /// Counts a call, if the caller may make it now; if not, he may within a second.
    pub(crate) fn admit(&self, caller: &Caller) -> Result<(), TooMany> {
        let (key, tenant) = (caller.credential.key.id, caller.scope.tenant);
        // The key first: one that is too fast takes nothing from the others of its tenant.
        let fits = self.keys.as_ref().is_none_or(|keys| keys.take(key))
            && self
                .tenants
                .as_ref()
                .is_none_or(|tenants| tenants.take(tenant));
        if fits {
            return Ok(());
        }
        Err(TooMany {
            noted: self.notes.take(key),
        })
    }

    /// Counts a key that opened nothing, and waits as long as its answer has to.
    pub(crate) async fn failed(&self, peer: Option<Peer>) {
        let Some(Peer(address)) = peer else {
            return;
        };
        let turn = self.failures.turn(network(address), LATEST);
        sleep(turn.unwrap_or(LATEST)).await;
    }
}

impl Default for Rates {
    fn default() -> Self {
        Self::new(RateLimits::default())
    }
}

/// What one party has of an address: of IPv6 a whole network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            Ipv6Addr::from_bits(network).into()
        }
    }
}

/// So many a second of each, as many at once.
#[derive(Debug)]
struct Pace<K> {
    /// How far apart they are when they come evenly.
    apart: Duration,
    /// How far ahead of that they may be.
    ahead: Duration,
    turns: Mutex<Turns<K>>,
}

#[derive(Debug)]
struct Turns<K> {
    /// When the next of each comes if all come evenly. In the past it says nothing.
    next: HashMap<K, Instant>,
    /// When those that say nothing were forgotten last.
    swept: Instant,
}

impl<K: Eq + Hash> Pace<K> {
    /// `None` for any number.
    fn at(a_second: u32) -> Option<Self> {
        (a_second > 0).then(|| Self::new(a_second))
    }

    fn new(a_second: u32) -> Self {
        let apart = SECOND / a_second;
        Self {
            apart,
            ahead: SECOND.saturating_sub(apart),
            turns: Mutex::new(Turns {
                next: HashMap::new(),
                swept: Instant::now(),
            }),
        }
    }

    /// Takes a turn, if there is one now.
    fn take(&self, key: K) -> bool {
        self.turn(key, Duration::ZERO).is_some()
    }

    /// Takes the next turn, and says how far off it is; `None` where that is more than `latest`.
    fn turn(&self, key: K, latest: Duration) -> Option<Duration> {
        let now = Instant::now();
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.next.len() >= FEW && now - turns.swept >= SECOND {
            turns.swept = now;
            turns.next.retain(|_, next| *next > now);
            turns.next.shrink_to(FEW);
        }
        let known = turns.next.get(&key).copied();
        if known.is_none() && turns.next.len() >= MOST {
            return None;
        }
        let next = known.map_or(now, |next| next.max(now));
        let wait = next.saturating_duration_since(now + self.ahead);
        if wait > latest {
            return None;
        }
        turns.next.insert(key, next + self.apart);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn d33_so_many_a_second_come_through_at_once_or_evenly() {
        let pace = Pace::new(4);
        assert_eq!((0..10).filter(|_| pace.take("a")).count(), 4);
        assert!(pace.take("b"), "each has his own");

        advance(SECOND / 4).await;
        assert_eq!((0..10).filter(|_| pace.take("a")).count(), 1);

        let mut taken = 0;
        for _ in 0..100 {
            advance(SECOND / 10).await;
            taken += u32::from(pace.take("a"));
        }
        assert!((39..=41).contains(&taken), "{taken} in ten seconds");
    }

    #[tokio::test(start_paused = true)]
    async fn d08_keys_that_open_nothing_are_answered_later_and_later_and_never_too_late() {
        let rates = Rates::default();
        let peer = |text: &str| text.parse().ok().map(Peer);
        let late = async |from| {
            let begin = Instant::now();
            rates.failed(from).await;
            begin.elapsed()
        };
        for _ in 0..10 {
            assert!(late(peer("192.0.2.1")).await < Duration::from_millis(10));
        }
        let eleventh = late(peer("192.0.2.1")).await;
        assert!(eleventh > Duration::from_millis(50), "{eleventh:?}");
        assert!(late(peer("192.0.2.2")).await < Duration::from_millis(10));

        let crowd = (0..1000).map(|_| rates.failed(peer("::ffff:192.0.2.1")));
        let begin = Instant::now();
        futures::future::join_all(crowd).await;
        let all = begin.elapsed();
        assert!((LATEST..LATEST + SECOND).contains(&all), "{all:?}");
    }

    #[test]
    fn an_address_of_ipv6_counts_with_its_network() {
        let of = |text: &str| network(text.parse().unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));

        assert_eq!(
            of("2001:db8:1:2::3"),
            of("2001:db8:1:2:ffff:ffff:ffff:ffff")
        );
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded_and_forgotten() {
        let pace = Pace::new(1);
        for key in 0..MOST {
            assert!(pace.take(key));
        }
        assert!(!pace.take(MOST), "there is no room");

        advance(SECOND).await;

        assert!(pace.take(MOST));
        let turns = pace.turns.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(turns.next.len(), 1);
    }
}
