//! Chat completions: `POST {base_url}/chat/completions`, which most servers of open models speak too.
//!
//! * `request` is the way out: `history` writes the conversation, `ids` the ids of its calls;
//! * `chunk` gives an event's JSON its types, as forgiving as the servers are various;
//! * `mapping` turns chunks into hango's [`StreamEvent`](hango_domain::model::StreamEvent)s. It leaves
//!   what is said and thought to `speech`, reasoning that goes back as it came to `details`, and telling
//!   the fragments of several calls apart to `calls`;
//! * `tags` finds what models write into their text, and `markup` reads a call that is written so;
//! * `asked` is what an answer is measured by: the request's limit and tools.

mod asked;
mod calls;
mod chunk;
mod details;
mod finish;
mod history;
mod ids;
mod mapping;
mod markup;
mod request;
mod speech;
mod tags;

#[cfg(test)]
mod cuts;

pub(crate) use chunk::name;
pub(crate) use request::Requests;
