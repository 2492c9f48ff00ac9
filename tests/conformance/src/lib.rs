//! What every store must do: one plain async function for each rule, over nothing but the ports.
//!
//! A store's own tests register all of them in one line, [`store_tests!`]; whoever adds a check adds it
//! to every store. The names of checks are sentences. No check sleeps: time passes when it says so.
//!
//! [`life`] and [`queue`] compare a store with the domain's own functions over random input; the other
//! groups say the rules one by one, for people.

mod clock;
mod fixture;
pub mod life;
mod model;
mod random;
mod runs;
mod writes;

pub use clock::ManualClock;
pub use fixture::{Fixture, Place};
pub use runs::{OnRecord, TTL, no_limits, owner, refused};
pub use writes::{USAGE, result_of};

/// Registers every check of this crate as a test of the store that a factory makes.
///
/// The factory is an `async fn(Arc<ManualClock>) -> (Stores, impl Sized)`: an empty store which reads
/// that clock, and whatever must live as long as the store does (a directory, a server, `()`).
#[macro_export]
macro_rules! store_tests {
    ($empty_stores:expr) => {
        $crate::store_tests! { @each $empty_stores;
            life {
                any_history_ends_where_the_rules_say
            }
        }
    };
    (@each $empty_stores:expr; $($group:ident { $($check:ident)* })*) => {
        $(
            mod $group {
                use super::*;

                $(
                    #[tokio::test(flavor = "multi_thread")]
                    async fn $check() {
                        let clock = ::std::sync::Arc::new($crate::ManualClock::default());
                        let (stores, _guard) = ($empty_stores)(::std::sync::Arc::clone(&clock)).await;
                        $crate::$group::$check($crate::Fixture::new(stores, clock)).await;
                    }
                )*
            }
        )*
    };
}
