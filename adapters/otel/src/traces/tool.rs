//! A tool call, whether a tool was executed or not.

use hango_domain::SpanId;
use hango_ports::telemetry::{ErrorType, ToolFacts};

use super::content;
use super::draft::Draft;
use crate::names::{key, span, value};

pub(super) fn draft(call: &ToolFacts) -> Draft {
    let context = &call.context;
    let name = format!("{} {}", span::EXECUTE_TOOL, call.tool);
    let said = call.content.as_ref();
    Draft::of_run(&call.about, name, call.took)
        .within(SpanId::of_turn(context.run, context.attempt, context.turn))
        .with(key::OPERATION_NAME, span::EXECUTE_TOOL)
        .with(key::TOOL_NAME, call.tool.clone())
        .with(key::TOOL_CALL_ID, call.tool_use_id.clone())
        .with(key::TOOL_TYPE, value::FUNCTION)
        .with_some(
            key::TOOL_DESCRIPTION,
            call.description.as_deref().map(content::text),
        )
        .with(key::TOOL_EXECUTED, call.executed)
        .taken_for("tool", "TOOL")
        .with_some(
            key::TOOL_ARGUMENTS,
            said.map(|it| content::arguments(&it.arguments)),
        )
        .with_some(key::TOOL_RESULT, said.map(|it| content::result(&it.result)))
        .failed(call.failure.map(ErrorType::from))
}
