//! Keeps the conversation legal that a run builds on.
//!
//! What another run left open at the end of the history is answered once, by a message that is stored.
//! Damage further back is repaired on every call, on the copy that is sent; stored messages are never
//! rewritten.
//!
//! This layer does not guard the final call: layers further in may still rewrite the conversation. The
//! guard is the validator behind the innermost layer, in [`ModelNext::run`].

use std::sync::Arc;

use async_trait::async_trait;

use crate::conversation::{Block, Role, dangling_results, repair};
use crate::memory::RunMemory;
use crate::middleware::{BeforeRunError, Middleware, ModelNext, RunView};
use crate::model::{ModelCall, ModelFailure, ModelReply};
use crate::note::Note;

/// Repairs the conversation before a run and before each model call.
#[derive(Clone, Copy, Debug)]
pub struct RepairToolCalls;

impl RepairToolCalls {
    /// The layer's name.
    pub const NAME: &'static str = "repair_tool_calls";
}

#[async_trait]
impl Middleware for RepairToolCalls {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// Answers the calls that another run left open. The run's own open calls are in its journal: they
    /// are finished there, executed again, or declared in doubt.
    async fn before_run(
        &self,
        run: &RunView<'_>,
        _memory: &mut RunMemory,
    ) -> Result<Option<Vec<Block>>, BeforeRunError> {
        let mut newest_first = run.history.iter().rev();
        let answer = newest_first.find(|said| said.role == Role::Assistant && !said.partial);
        if answer.is_none_or(|answer| answer.run_id == Some(run.context.run)) {
            return Ok(None);
        }
        Ok(dangling_results(run.history))
    }

    async fn model(
        &self,
        mut call: ModelCall,
        memory: &mut RunMemory,
        next: ModelNext<'_>,
    ) -> Result<ModelReply, ModelFailure> {
        let repaired = repair(&call.messages);
        if !repaired.repairs.is_empty() {
            next.notes().add(Note::HistoryRepaired {
                repairs: repaired.repairs.len(),
            });
            call.messages = Arc::new(repaired.messages.into_owned());
        }
        next.run(call, memory).await
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::chain::Chain;
    use crate::conversation::{Message, validate};
    use crate::fixtures::{context, model_call, reply, said, tool_use};
    use crate::journal::NOT_EXECUTED;
    use crate::middleware::MockModelHandler;
    use crate::note::Notes;

    #[test]
    fn calls_that_another_run_left_open_are_answered_by_a_stored_message() {
        let history = [
            said(1, Role::User, Block::text("what time is it?")),
            said(2, Role::Assistant, tool_use("call_1")),
            said(3, Role::User, Block::text("hello?")),
        ];

        let appended = before_run(&history);

        let answer = Block::ToolResult {
            tool_use_id: "call_1".to_owned(),
            content: NOT_EXECUTED.to_owned(),
            for_user: None,
            is_error: true,
        };
        assert_eq!(appended, Some(vec![answer]));
    }

    #[test]
    fn the_runs_own_open_calls_are_left_to_its_journal() {
        let own = Message {
            run_id: Some(context().run),
            ..said(2, Role::Assistant, tool_use("call_1"))
        };

        let history = [said(1, Role::User, Block::text("what time is it?")), own];

        assert_eq!(before_run(&history), None);
    }

    #[test]
    fn a_history_with_nothing_open_gets_no_message() {
        let history = [
            said(1, Role::User, Block::text("hi")),
            said(2, Role::Assistant, Block::text("hi")),
            said(3, Role::User, Block::text("bye")),
        ];

        assert_eq!(before_run(&history), None);
        assert_eq!(before_run(&[]), None);
    }

    #[test]
    fn damage_is_repaired_in_the_copy_that_is_sent_and_noted() {
        let mut call = model_call();
        call.messages = Arc::new(vec![
            said(1, Role::User, Block::text("what time is it?")),
            said(2, Role::Assistant, tool_use("call_1")),
            said(3, Role::User, Block::text("hello?")),
        ]);
        let mut model = MockModelHandler::new();
        model
            .expect_call()
            .once()
            .withf(|sent| validate(&sent.messages).is_ok() && sent.messages.len() == 3)
            .returning(|_| Ok(reply("hello")));
        let notes = Notes::default();

        let chain = Chain::new(vec![Arc::new(RepairToolCalls)]);
        let got = block_on(chain.model(call, &mut RunMemory::default(), &model, &notes));

        assert_eq!(got, Ok(reply("hello")));
        assert_eq!(notes.take(), [Note::HistoryRepaired { repairs: 1 }]);
    }

    #[test]
    fn a_legal_conversation_is_sent_as_it_is_and_nothing_is_noted() {
        let call = model_call();
        let expected = call.clone();
        let mut model = MockModelHandler::new();
        model
            .expect_call()
            .once()
            .withf(move |sent| *sent == expected)
            .returning(|_| Ok(reply("hello")));
        let notes = Notes::default();

        let chain = Chain::new(vec![Arc::new(RepairToolCalls)]);
        let got = block_on(chain.model(call, &mut RunMemory::default(), &model, &notes));

        assert_eq!(got, Ok(reply("hello")));
        assert_eq!(notes.take(), []);
    }

    fn before_run(history: &[Message]) -> Option<Vec<Block>> {
        let context = context();
        let run = RunView {
            context: &context,
            history,
            resumed: false,
            notes: &Notes::default(),
        };
        let chain = Chain::new(vec![Arc::new(RepairToolCalls)]);
        block_on(chain.before_run(&run, &mut RunMemory::default())).expect("nothing to fail")
    }
}
