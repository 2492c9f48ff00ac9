//! What is thought: told apart from what is said, and kept as its server wants it back.

use super::*;

fn thinking(events: &[StreamEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        StreamEvent::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// What is attached to the answer's thinking.
fn attached(payloads: &[Value]) -> Value {
    let mut payloads = payloads.to_vec();
    payloads.push(finish("stop"));
    let reply = reply(&payloads).expect("whole");
    let mut attached = reply.content.into_iter().filter_map(|block| match block {
        Block::Thinking { provider_data, .. } => provider_data,
        _ => None,
    });
    let data = attached.next().expect("something is attached");
    assert_eq!(
        (data.provider.as_str(), data.model.as_str()),
        ("local", "m")
    );
    data.data
}

#[test]
fn o41_reasoning_that_took_all_tokens_is_no_answer() {
    let usage = json!({"choices": [], "usage": {
        "prompt_tokens": 20, "completion_tokens": 64,
        "completion_tokens_details": {"reasoning_tokens": 64},
    }});
    let shown = delta(json!({"reasoning_content": "hm"}));
    let hidden = delta(json!({"content": ""}));

    for first in [shown, hidden] {
        let reply = reply(&[first, finish("length"), usage.clone()]).expect("whole");

        assert!(reply.is_empty_answer());
        assert_eq!(reply.stop_reason, StopReason::MaxTokens);
    }
}

#[test]
fn l1_and_l4_reasoning_says_in_which_member_it_came() {
    for name in ["reasoning_content", "reasoning"] {
        let thought = delta(Value::Object(Map::from_iter([(
            name.to_owned(),
            "hm".into(),
        )])));

        assert_eq!(attached(&[thought]), json!({"member": name}));
    }
    let both = delta(json!({"reasoning": "hm", "reasoning_content": "hm"}));
    assert_eq!(attached(&[both]), json!({"member": "reasoning_content"}));
    let part = delta(json!({"content": [{"type": "thinking", "thinking": "hm"}]}));
    assert_eq!(attached(&[part]), json!({}));
}

#[test]
fn l1_reasoning_of_an_answer_that_broke_off_is_nobodys() {
    let events = events(&[delta(json!({"reasoning_content": "hm"}))]).expect("legal so far");

    let failure = accumulate(events).expect_err("no stop came");

    let [Block::Thinking { provider_data, .. }] = failure.partial.as_slice() else {
        panic!("{failure:?}");
    };
    assert_eq!(provider_data, &None);
}

#[test]
fn l18_details_are_kept_whole_and_in_their_order() {
    let details = |list: Value| delta(json!({"reasoning": "x", "reasoning_details": list}));
    let text =
        |text: &str| json!([{"type": "reasoning.text", "text": text, "index": 0, "format": "f"}]);
    let signed = json!([{"type": "reasoning.text", "signature": "s", "text": null, "index": 0}]);
    let hidden =
        |index: u64| json!({"type": "reasoning.encrypted", "data": "d", "id": "i", "index": index});

    let reply = reply(&[
        details(text("Let")),
        details(text(" me see")),
        details(signed),
        details(json!([hidden(1), hidden(1), {"type": "reasoning.summary", "summary": "S"}])),
        details(json!([{"type": "reasoning.summary", "summary": "T"}])),
        finish("stop"),
    ]);

    let reply = reply.expect("whole");
    let Some(Block::Provider(data)) = reply.content.get(1) else {
        panic!("no details in {reply:?}");
    };
    let expected = json!({"reasoning_details": [
        {"type": "reasoning.text", "text": "Let me see", "index": 0, "format": "f", "signature": "s"},
        hidden(1),
        hidden(1),
        {"type": "reasoning.summary", "summary": "S"},
        {"type": "reasoning.summary", "summary": "T"},
    ]});
    assert_eq!(data.data, expected);
    let [
        Block::Thinking {
            thinking,
            provider_data,
            ..
        },
        _,
    ] = reply.content.as_slice()
    else {
        panic!("{reply:?}");
    };
    assert_eq!(thinking, "xxxxx");
    assert_eq!(
        provider_data.as_ref().map(|data| &data.data),
        Some(&json!({}))
    );
}

#[test]
fn l18_details_alone_are_shown_and_encrypted_ones_are_kept() {
    let shown =
        delta(json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "S"}]}));
    let hidden =
        delta(json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}]}));

    let events = events(&[shown, finish("stop")]).expect("legal");
    assert_eq!(thinking(&events), "S");

    let reply = reply(&[hidden, finish("stop")]).expect("whole");
    assert!(
        matches!(reply.content.as_slice(), [Block::Provider(_)]),
        "{reply:?}"
    );
}

#[test]
fn l18_details_without_end_are_a_failure_and_odd_ones_are_passed_over() {
    let one = json!({"type": "reasoning.encrypted", "data": "d"});
    let many = delta(json!({"reasoning_details": vec![one.clone(); 256]}));
    let odd = delta(json!({"reasoning_details": {"odd": true}}));

    let failure = events(&[many, delta(json!({"reasoning_details": [one]}))]);
    assert_eq!(
        failure.expect_err("too many").kind,
        ModelFailureKind::Protocol
    );

    assert_eq!(events(&[odd]), Ok(Vec::new()));
}

#[test]
fn l25_tagged_thoughts_stay_in_the_text_unless_they_are_looked_for() {
    let payloads = ["<thi", "nk>hm</thi", "nk>\n\nHi"].map(|text| delta(json!({"content": text})));
    let mut payloads = payloads.to_vec();
    payloads.push(finish("stop"));

    let raw = reply(&payloads).expect("whole");
    assert_eq!(raw.content, [Block::text("<think>hm</think>\n\nHi")]);

    let tagged = Asked {
        think_tags: true,
        ..asked()
    };
    let read = reply_asked(tagged, &payloads).expect("whole");
    let [Block::Thinking { thinking, .. }, text] = read.content.as_slice() else {
        panic!("{read:?}");
    };
    assert_eq!((thinking.as_str(), text), ("hm", &Block::text("Hi")));
}

#[test]
fn l25_what_is_held_back_is_told_at_the_end() {
    for end in ["stop", "length"] {
        let tagged = Asked {
            think_tags: true,
            calls_in_text: true,
            ..asked()
        };
        let texts = ["a ", "<tool_"].map(|text| delta(json!({"content": text})));
        let [first, second] = texts;

        let reply = reply_asked(tagged, &[first, second, finish(end)]).expect("whole");

        assert_eq!(reply.content, [Block::text("a <tool_")]);
    }
}

#[test]
fn g7_thoughts_that_are_marked_are_no_text() {
    let mark = json!({"google": {"thought": true}});
    let by_mark = [
        delta(json!({"content": "<thought>hm", "extra_content": mark})),
        delta(json!({"content": "ja", "extra_content": mark})),
        delta(json!({"content": "</thought>Hi"})),
        delta(json!({"content": "</thought>"})),
    ];
    let by_part = [
        delta(json!({"content": [{"text": "hmja", "thought": true}]})),
        delta(json!({"content": [{"text": "Hi</thought>", "thought": false}]})),
    ];

    for payloads in [by_mark.as_slice(), by_part.as_slice()] {
        let mut payloads = payloads.to_vec();
        payloads.push(finish("STOP"));
        let reply = reply(&payloads).expect("whole");

        let [Block::Thinking { thinking, .. }, text] = reply.content.as_slice() else {
            panic!("{reply:?}");
        };
        assert_eq!(
            (thinking.as_str(), text),
            ("hmja", &Block::text("Hi</thought>"))
        );
    }
}
