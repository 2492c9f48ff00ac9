//! Reasoning: what people see of it, and what its server wants back.

use super::*;

fn summary(index: u32, part: u32, text: &str) -> Value {
    json!({
        "type": "response.reasoning_summary_text.delta", "output_index": index, "item_id": "rs_1",
        "summary_index": part, "delta": text,
    })
}

fn item(summary: Value) -> Value {
    json!({
        "type": "reasoning", "id": "rs_1", "summary": summary, "content": [], "status": null,
        "encrypted_content": "gAAA",
    })
}

fn thinking(text: &str, signature: &str, data: Value) -> Block {
    Block::Thinking {
        thinking: text.to_owned(),
        signature: signature.to_owned(),
        provider_data: Some(own(data)),
    }
}

#[test]
fn r9_a_summary_is_thinking_and_the_item_is_kept_whole() {
    let parts = json!([
        {"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."},
    ]);
    let payloads = [
        added(
            0,
            json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gA"}),
        ),
        summary(0, 0, "Fir"),
        summary(0, 0, "st."),
        summary(0, 1, "Then."),
        done(0, item(parts.clone())),
        done(1, message("msg_1", "Hi")),
        completed(json!([item(parts.clone()), message("msg_1", "Hi")])),
    ];

    let streamed = reply(&payloads).expect("an answer");
    let repeated = reply(&payloads[6..]).expect("an answer");

    let data = json!({"type": "reasoning", "id": "rs_1", "summary": parts});
    let expected = thinking("First.\n\nThen.", "gAAA", data);
    assert_eq!(streamed.content[0], expected);
    assert_eq!(repeated, streamed);
}

#[test]
fn r9_reasoning_that_says_nothing_to_people_is_kept_for_its_server() {
    let payloads = [
        done(0, item(json!([]))),
        done(1, call("fc_1", "call_1", "{}")),
        completed(json!([])),
    ];

    let reply = reply(&payloads).expect("an answer");

    let data = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    assert_eq!(reply.content[0], thinking("", "gAAA", data));
}

#[test]
fn r9_reasoning_in_the_clear_is_thinking_too() {
    let content = json!([{"type": "reasoning_text", "text": "Noon is 12."}]);
    let item = json!({
        "type": "reasoning", "id": "rs_1", "summary": [], "content": content,
        "encrypted_content": "",
    });
    let begun = json!({"type": "reasoning", "id": "rs_1"});
    let delta = json!({
        "type": "response.reasoning_text.delta", "item_id": "rs_1", "delta": "Noon is 12.",
    });

    let streamed = reply(&[
        json!({"type": "response.output_item.added", "item": begun}),
        delta,
        completed(json!([item])),
    ]);
    let repeated = reply(&[completed(json!([item]))]);

    let data = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": content});
    let expected = [thinking("Noon is 12.", "", data)];
    assert_eq!(streamed.expect("an answer").content, expected);
    assert_eq!(repeated.expect("an answer").content, expected);
}

#[test]
fn r9_reasoning_without_anything_in_it_is_none() {
    let empty = json!({"type": "reasoning", "id": "rs_1", "summary": []});

    let reply = reply(&[completed(json!([empty, message("msg_1", "Hi")]))]);

    assert_eq!(reply.expect("an answer").content.len(), 1);
}

#[test]
fn r9_reasoning_whose_whole_got_lost_is_for_people_alone() {
    let reply = reply(&[summary(0, 0, "Hm."), completed(json!([]))]).expect("an answer");

    let expected = Block::Thinking {
        thinking: "Hm.".to_owned(),
        signature: String::new(),
        provider_data: None,
    };
    assert_eq!(reply.content, [expected]);
}
