//! Failpoints: named places at which a process for tests dies, stops, waits or fails on purpose.
//!
//! `HANGO_FAILPOINT=point:action:nth[,more]` arms them. The points are the calls of the ports, before
//! and after each (`point@name` those of one tool or kind of provider); they are passed in decorators that stand here and nowhere else, so that what they
//! wrap knows nothing of them. A build that is not for tests has none of this, and refuses to start
//! when the variable is set. `docs/testing.md` says how they are used.

mod action;
mod calls;
mod plan;
mod stores;

use std::sync::Arc;

use hango_domain::tool::Tool;
use hango_ports::{Provider, Stores};
use thiserror::Error;

use calls::{ArmedProvider, ArmedTool};
use plan::Failpoint;

/// The failpoints of a process; its clones count together. Without any, nothing is wrapped.
#[derive(Clone, Default)]
pub(crate) struct Failpoints(Arc<[Failpoint]>);

/// What a call says that a failpoint let fail.
#[derive(Clone, Copy, Debug, Error)]
#[error("failpoint {0}")]
struct Reached(&'static str);

impl Failpoints {
    /// Reads `point:action:nth`, any number of them separated by commas.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let entries = text.split(',').filter(|entry| !entry.trim().is_empty());
        let points: Result<Vec<_>, _> = entries.map(|entry| entry.trim().parse()).collect();
        Ok(Self(points?.into()))
    }

    /// The stores, with a point before and after each call.
    pub(crate) fn stores(&self, stores: Stores) -> Stores {
        if self.0.is_empty() {
            return stores;
        }
        tracing::warn!(points = ?self.0, "this process fails on purpose");
        stores::armed(stores, self)
    }

    /// A provider, with points around its calls and in its answers.
    pub(crate) fn provider(&self, provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
        if self.0.is_empty() {
            return provider;
        }
        Arc::new(ArmedProvider::new(provider, self.clone()))
    }

    /// A tool, with a point before and after each call.
    pub(crate) fn tool(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        if self.0.is_empty() {
            return tool;
        }
        Arc::new(ArmedTool::new(tool, self.clone()))
    }

    /// Passes points that are at the same place and have different names, on the way to a tool or
    /// provider, if `whose` is not empty.
    async fn pass<const N: usize>(
        &self,
        points: [&'static str; N],
        whose: &str,
    ) -> Result<(), Reached> {
        for name in points {
            for armed in self.0.iter().filter(|armed| armed.is_at(name, whose)) {
                if armed.is_due() {
                    armed.action.perform(name).await?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
