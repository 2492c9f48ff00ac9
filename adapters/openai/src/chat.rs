//! Chat completions: `POST {base_url}/chat/completions`, which most servers of open models speak too.
//!
//! * `request` is the way out;
//! * `chunk` gives an event's JSON its types, as forgiving as the servers are various;
//! * `mapping` turns chunks into hango's [`StreamEvent`](hango_domain::model::StreamEvent)s, with
//!   `calls` telling the fragments of several tool calls apart.

mod calls;
mod chunk;
mod mapping;
mod request;

#[cfg(test)]
mod cuts;

pub(crate) use mapping::Mapping;
pub(crate) use request::Requests;
