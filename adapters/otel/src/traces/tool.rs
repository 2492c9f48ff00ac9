//! A tool call, whether a tool was executed or not.

use hango_domain::SpanId;
use hango_domain::tool::told_name;
use hango_ports::telemetry::{ErrorType, ToolFacts};

use super::content;
use super::draft::Draft;
use crate::names::{key, span, value};

pub(super) fn draft(call: &ToolFacts) -> Draft {
    let context = &call.context;
    let tool = told_name(&call.tool);
    let name = format!("{} {tool}", span::EXECUTE_TOOL);
    let said = call.content.as_ref();
    Draft::of_run(&call.about, name, call.took)
        .within(SpanId::of_turn(context.run, context.attempt, context.turn))
        .with(key::OPERATION_NAME, span::EXECUTE_TOOL)
        .with(key::TOOL_NAME, tool.to_owned())
        .with(key::TOOL_CALL_ID, told_name(&call.tool_use_id).to_owned())
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
