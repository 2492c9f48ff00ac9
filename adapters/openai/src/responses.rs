//! Responses: `POST {base_url}/responses`, OpenAI's protocol for models that reason.
//!
//! * `request` is the way out, `ids` spells the ids of calls on it;
//! * `frame` tells an event's class: known, unknown, or corrupt;
//! * `mapping` turns frames into hango's [`StreamEvent`](hango_domain::model::StreamEvent)s: `items` puts
//!   the answer's items together, `item` is one of them, `report` says what an error means.
//!
//! Nothing is stored on the server: every request holds the whole conversation. So what the server needs
//! back is kept here, reasoning and items of its own kinds as they came, and goes back to the same
//! provider as the same model, and nowhere else.

mod frame;
mod ids;
mod item;
mod items;
mod mapping;
mod report;
mod request;

#[cfg(test)]
mod cuts;

pub(crate) use mapping::Mapping;
pub(crate) use request::Requests;
