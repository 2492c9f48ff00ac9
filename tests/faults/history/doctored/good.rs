//! A good story. Two sessions: in the first a run with two calls, and one that only answers; in the second a
//! run whose holder dies while the model answers, so that another one asks again.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

use crate::fault::{Fault, Hits};
use crate::history::story::{Story, Told};
use crate::moment::Moment;
use crate::store::EventRow;
use crate::timing::Timing;
use crate::truth::client::{Accepted, Log};
use crate::truth::provider::Asked;
use crate::truth::tools::Called;

/// Who executes.
pub(super) const HOLDERS: [&str; 2] = ["holder-1", "holder-2"];

/// When it begins: some day.
const BEGIN: Moment = Moment(1_700_000_000_000_000);

/// How long anything takes.
const STEP: Duration = Duration::from_millis(10);

/// What is between two runs, so that a moment can be moved without meeting the next one.
const PAUSE: Duration = Duration::from_secs(10);

/// The story.
pub(super) fn story() -> Story {
    let mut teller = Teller {
        now: BEGIN,
        serial: 0,
        story: Story {
            clients: Log::default(),
            asked: HashMap::new(),
            refused: Vec::new(),
            called: HashMap::new(),
            faults: Vec::new(),
            runs: Vec::new(),
            messages: HashMap::new(),
            audited: Vec::new(),
            holders: HashMap::new(),
            owners: HashSet::from(HOLDERS.map(str::to_owned)),
            gaps: Vec::new(),
            timing: Timing::SHORT,
            foreign: Vec::new(),
            leaks: Vec::new(),
        },
    };
    for (session, turns, is_hit) in [
        ("session-1", 2, false),
        ("session-1", 1, false),
        ("session-2", 1, true),
    ] {
        let told = Telling::begin(&mut teller, session).tell(turns, is_hit);
        teller.keep(told);
    }
    teller.story
}

/// A moment as the API says it.
pub(super) fn text(moment: Moment) -> String {
    let moment = DateTime::from_timestamp_micros(moment.0).unwrap_or_default();
    moment.to_rfc3339_opts(SecondsFormat::Micros, true)
}

struct Teller {
    now: Moment,
    serial: usize,
    story: Story,
}

impl Teller {
    /// The next moment.
    fn tick(&mut self) -> Moment {
        self.now = self.now.plus(STEP);
        self.now
    }

    /// A run that has ended.
    fn keep(&mut self, told: Told) {
        let ended = &mut self.story.clients.ended;
        ended.insert(told.id.clone(), told.run.clone());
        self.story.runs.push(told);
        self.now = self.now.plus(PAUSE);
    }
}

/// A run that is being told.
struct Telling<'a> {
    teller: &'a mut Teller,
    id: String,
    session: String,
    input: String,
    attempt: i64,
    events: Vec<EventRow>,
    calls: Vec<Value>,
}

impl<'a> Telling<'a> {
    /// It is asked for and promised.
    fn begin(teller: &'a mut Teller, session: &str) -> Self {
        let n = teller.story.runs.len() + 1;
        let (id, input) = (format!("run-{n}"), format!("run {n}, try 1"));
        let asked = teller.tick();
        let accepted = Accepted {
            session: session.to_owned(),
            id: id.clone(),
            input: input.clone(),
            asked,
            promised: teller.tick(),
        };
        let clients = &mut teller.story.clients;
        clients.sent.push(input.clone());
        clients.accepted.push(accepted);
        teller.story.audited.push(id.clone());
        let mut telling = Self {
            teller,
            id,
            session: session.to_owned(),
            input,
            attempt: 0,
            events: Vec::new(),
            calls: Vec::new(),
        };
        telling.event("run.queued", "");
        telling
    }

    fn event(&mut self, kind: &str, reason: &str) -> Moment {
        let at = self.teller.tick();
        self.events.push(EventRow {
            run: self.id.clone(),
            n: i64::try_from(self.events.len()).unwrap_or_default() + 1,
            attempt: self.attempt,
            at,
            kind: kind.to_owned(),
            reason: reason.to_owned(),
        });
        at
    }

    fn claim(&mut self, holder: &str) -> Moment {
        self.attempt += 1;
        let claim = (self.id.clone(), self.attempt);
        self.teller.story.holders.insert(claim, holder.to_owned());
        self.event("run.started", "")
    }

    /// A message; its id.
    fn says(&mut self, role: &str, content: &Value, stop_reason: Option<&str>) -> String {
        let at = self.event("message.completed", "");
        let messages = &mut self.teller.story.messages;
        let messages = messages.entry(self.session.clone()).or_default();
        let seq = messages.len() + 1;
        let id = format!("message-{}-{seq}", self.session);
        messages.push(json!({
            "id": id, "seq": seq, "run_id": self.id, "role": role, "content": content,
            "stop_reason": stop_reason, "partial": false, "created_at": text(at),
        }));
        id
    }

    /// The model is asked; the number of the answer, and the ids of so many calls.
    fn asks(&mut self, turn: usize, calls: usize) -> (usize, Vec<String>) {
        self.teller.serial += 1;
        let serial = self.teller.serial;
        let ids: Vec<_> = (0..calls).map(|n| format!("call_{serial}_{n}")).collect();
        let asked = Asked {
            run: self.input.clone(),
            turn,
            serial,
            ids: ids.clone(),
            at: self.teller.tick(),
            whole: Some(self.teller.tick()),
        };
        let log = self.teller.story.asked.entry(self.input.clone());
        log.or_default().push(asked);
        (serial, ids)
    }

    /// A call is made and its result recorded.
    fn makes_call(&mut self, turn: usize, tool: &str, id: &str) {
        let key = format!("key of {id}");
        let called = Called {
            tool: tool.to_owned(),
            key: key.clone(),
            run: self.id.clone(),
            call: id.to_owned(),
            at: self.teller.tick(),
            answered: Some(true),
        };
        let log = self.teller.story.called.entry(self.id.clone());
        log.or_default().push(called);
        let finished = self.event("tool.completed", "");
        self.calls.push(json!({
            "tool_use_id": id, "turn": turn, "name": tool, "state": "finished", "executions": 1,
            "idempotency_key": key, "finished_at": text(finished),
        }));
    }

    /// A turn with two calls.
    fn turn_of_calls(&mut self, turn: usize) {
        let (_, ids) = self.asks(turn, 2);
        let tools = ["keyed", "unsafe"];
        let uses = ids
            .iter()
            .zip(tools)
            .map(|(id, tool)| json!({"type": "tool_use", "id": id, "name": tool, "input": {}}));
        self.says("assistant", &uses.collect(), Some("tool_use"));
        for (id, tool) in ids.iter().zip(tools) {
            self.makes_call(turn, tool, id);
        }
        let results = ids.iter();
        let results = results.map(|id| json!({"type": "tool_result", "tool_use_id": id}));
        self.says("user", &results.collect(), None);
        self.event("turn.completed", "");
    }

    /// It executes; `is_hit` if its first holder dies meanwhile.
    fn tell(mut self, turns: usize, is_hit: bool) -> Told {
        let started = self.claim(HOLDERS[0]);
        let input = json!([{"type": "text", "text": self.input}]);
        self.says("user", &input, None);
        if is_hit {
            self.asks(1, 0);
            self.dies();
            self.claim(HOLDERS[1]);
        }
        for turn in 1..turns {
            self.turn_of_calls(turn);
        }
        let (serial, _) = self.asks(turns, 0);
        let answer = json!([{"type": "text", "text": format!("the answer is {serial}")}]);
        let last = self.says("assistant", &answer, Some("end_turn"));
        self.event("turn.completed", "");
        let finished = self.event("run.succeeded", "");
        let run = json!({
            "id": self.id, "state": "succeeded", "attempt": self.attempt, "input": input,
            "iterations": turns, "final_message_id": last,
            "usage": {"input_tokens": 10 * turns, "output_tokens": 5 * turns},
            "usage_discarded": {"input_tokens": 0, "output_tokens": 0},
            "started_at": text(started), "finished_at": text(finished),
        });
        Told {
            id: self.id,
            session: self.session,
            input: self.input,
            run,
            calls: self.calls,
            events: self.events,
        }
    }

    /// Its holder dies, and its lease runs out.
    fn dies(&mut self) {
        let at = self.teller.tick();
        self.teller.story.faults.push(Fault {
            what: "kill -9",
            from: at,
            until: at,
            hits: Hits::Dead(HOLDERS[0].to_owned()),
            held: vec![(self.id.clone(), self.attempt)],
        });
        self.teller.now = at.plus(self.teller.story.timing.lease);
        self.event("run.requeued", "lease_expired");
    }
}
