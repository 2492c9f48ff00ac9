//! What is true of a run's creator and tenant, and what the layers want appended.

use super::*;
use crate::conversation::{Block, NewMessage};
use crate::journal::{CallState, OUTCOME_UNKNOWN};
use crate::run::ChangeKind as Kind;
use crate::run::RunState;
use crate::run::fixtures::message_id;

fn begin_with(bench: &mut Bench, text: &str) -> Step {
    bench.give(Input::Begin {
        standing: bench.standing,
        append: Some(vec![Block::text(text)]),
    })
}

#[test]
fn a_creator_who_may_not_act_ends_the_run_at_its_claim() {
    let mut bench = Bench::on(Store::new().claimed(), LIMITS);
    bench.standing = CREATOR_INACTIVE;

    assert_eq!(bench.begin(), Step::Done);

    assert_eq!(bench.writes(), [Kind::Finish]);
    assert_eq!(bench.store.ended(), "creator_inactive");
    bench.store.check_end();
}

#[test]
fn a_creator_who_may_not_act_ends_the_run_at_its_claim_amid_a_turn_too() {
    let mut bench = Bench::begun(LIMITS);
    bench.reply(asks(&[("c1", "safe")]));

    let mut resumed = Bench::on(bench.store.reclaimed(), LIMITS);
    resumed.standing = CREATOR_INACTIVE;

    assert_eq!(resumed.begin(), Step::Done);
    assert_eq!(resumed.store.ended(), "creator_inactive");
    assert_eq!(resumed.store.journaled(), [("c1", CallState::InDoubt, 1)]);
    assert_eq!(
        resumed.store.said()[2],
        format!("user: c1 failed {OUTCOME_UNKNOWN}")
    );
    resumed.store.check_end();
}

#[test]
fn a_creator_who_may_not_act_any_more_ends_the_run_at_its_next_boundary() {
    let mut bench = Bench::begun(LIMITS);
    bench.standing = CREATOR_INACTIVE;

    assert_eq!(begins(&bench.reply(asks(&[("c1", "safe")]))), [1]);
    assert_eq!(bench.returned(1, ToolResult::ok("12:00")), Step::Done);

    assert_eq!(
        bench.writes(),
        [Kind::Answer, Kind::CompleteTurn, Kind::Finish]
    );
    assert_eq!(bench.store.ended(), "creator_inactive");
    assert_eq!(bench.store.said()[2], "user: c1 gave 12:00");
    bench.store.check_end();
}

#[test]
fn a_suspended_tenants_run_goes_back_at_its_boundary() {
    let mut at_claim = Bench::on(Store::new().claimed(), LIMITS);
    at_claim.standing = SUSPENDED;
    assert_eq!(at_claim.begin(), Step::Done);
    let mut amid = Bench::begun(LIMITS);
    amid.standing = SUSPENDED;
    amid.reply(asks(&[("c1", "safe")]));
    assert_eq!(amid.returned(1, ToolResult::ok("12:00")), Step::Done);

    for bench in [at_claim, amid] {
        assert_eq!(bench.store.run.state, RunState::Queued);
        let reason = match bench.saved.last() {
            Some(Change::GiveBack(change)) => Some(change.reason),
            Some(Change::CompleteTurn(change)) => match change.then {
                crate::run::AfterTurn::GiveBack(reason) => Some(reason),
                crate::run::AfterTurn::GoOn => None,
            },
            _ => None,
        };
        assert_eq!(reason, Some(RequeueReason::TenantSuspended));
    }
}

#[test]
fn a_cancel_that_was_asked_for_before_the_beginning_ends_the_run_there() {
    let mut bench = Bench::on(Store::new().claimed(), LIMITS);
    bench.request_cancel();
    bench.standing = Standing {
        cancel_requested: true,
        ..FINE
    };

    assert_eq!(bench.begin(), Step::Done);

    assert_eq!(bench.writes(), [Kind::Finish]);
    assert_eq!(bench.store.ended(), "cancelled");
}

#[test]
fn what_the_layers_want_appended_is_saved_before_the_first_model_call() {
    let mut bench = Bench::on(Store::new().claimed(), LIMITS);
    let appended = bench.agent.advance(Input::Begin {
        standing: FINE,
        append: Some(vec![Block::text("c0 is answered")]),
    });

    let Ok(Step::Save(Change::Repair(repair))) = appended else {
        panic!("{appended:?} is no repair");
    };
    bench.store.make(Change::Repair(repair));
    let step = bench.agent.advance(Input::Saved { standing: FINE });

    assert_eq!(step, Ok(Step::CallModel));
    assert_eq!(
        bench.store.said(),
        ["user: what time is it?", "user: c0 is answered"]
    );
    assert_eq!(
        *bench
            .agent
            .messages()
            .last()
            .map(|it| &it.content)
            .expect("one"),
        [Block::text("c0 is answered")]
    );
}

#[test]
fn nothing_is_appended_between_an_answer_and_its_results() {
    let mut bench = Bench::begun(LIMITS);
    bench.reply(asks(&[("c1", "safe")]));

    let mut resumed = Bench::on(bench.store.reclaimed(), LIMITS);
    let settled: Vec<u64> = resumed
        .agent
        .settled_history()
        .iter()
        .map(|message| message.seq)
        .collect();
    let step = begin_with(&mut resumed, "c1 is answered");

    assert_eq!(settled, [1]);
    assert_eq!(begins(&step), [1]);
    assert_eq!(
        resumed.store.said(),
        ["user: what time is it?", "assistant: safe(c1)"]
    );
}

#[test]
fn a_clients_message_behind_an_open_answer_does_not_hide_it() {
    let mut bench = Bench::begun(LIMITS);
    let step = bench.agent.advance(Input::Replied {
        reply: Ok(cut_off(&[("c1", "safe")])),
        left: AMPLE,
    });
    let Ok(Step::Save(answer)) = step else {
        panic!("{step:?} is no write");
    };
    bench.store.make(answer);
    let mut store = bench.store;
    let hurry = NewMessage::user(message_id(55), vec![Block::text("hurry")]);
    store.say(hurry, false);

    let mut resumed = Bench::on(store.reclaimed(), LIMITS);

    assert_eq!(resumed.agent.settled_history().len(), 1);
    let input = Input::Begin {
        standing: FINE,
        append: None,
    };
    let step = resumed.agent.advance(input);
    let Ok(Step::Save(Change::CompleteTurn(boundary))) = step else {
        panic!("{step:?} does not answer the call that was cut off");
    };
    assert_eq!(boundary.turn, 1);
    assert_eq!(resumed.store.run.usage, tokens(7));
}

#[test]
fn partial_messages_of_earlier_runs_are_not_sent() {
    let mut store = Store::new();
    let broken = NewMessage {
        partial: true,
        role: crate::conversation::Role::Assistant,
        ..NewMessage::user(message_id(55), vec![Block::text("half an")])
    };
    store.say(broken, false);

    let bench = Bench::on(store.claimed(), LIMITS);

    let sent: Vec<u64> = bench.agent.messages().iter().map(|it| it.seq).collect();
    assert_eq!(sent, [2]);
}
