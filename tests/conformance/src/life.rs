//! Random histories of one run, sent to the store and to [`Run::apply`]: both must agree on every
//! answer and on everything that is on record after it.
//!
//! [`Run::apply`]: hango_domain::run::Run::apply

mod fenced;
mod moves;
mod replay;

use proptest::collection::vec;

use self::moves::any_move;
use self::replay::Replay;
use crate::Fixture;
use crate::random::for_any;

/// Whatever is asked in whatever order, by whoever holds or once held the run, the store ends where the
/// rules say.
#[expect(clippy::unused_async, reason = "checks share one signature")]
pub async fn any_history_ends_where_the_rules_say(fixture: Fixture) {
    let fixture = &fixture;
    for_any(64, &vec(any_move(), 0..80), async |history| {
        let mut replay = Replay::begin(fixture).await;
        for step in history {
            replay.make(step).await?;
        }
        replay.end().await
    });
}
