//! Deciding a change. Whether it may be made, and what it leaves behind, the domain says.

use hango_domain::run::{Applied, Change, Run, TransitionError};
use hango_domain::session::SessionLine;

use super::writes::Writes;

/// Decides a change of `before`, in a session that stands at `line`, and adds what it leaves behind to
/// `writes`, which are made at the same moment. Returns where the session stands then.
pub(crate) fn decide(
    writes: &mut Writes,
    before: &Run,
    line: SessionLine,
    change: Change,
) -> Result<(Applied, SessionLine), TransitionError> {
    let applied = before.clone().apply(&change, writes.at)?;
    if applied.repeated {
        return Ok((applied, line));
    }
    let line = writes.add(before, &applied, change, line);
    Ok((applied, line))
}

/// The change as any store can keep it.
pub(crate) fn clean(change: &mut Change, run: hango_domain::RunId) {
    let replaced = change.clean();
    if replaced > 0 {
        tracing::warn!("hango.run.id" = %run, replaced, "characters that cannot be stored");
    }
}
