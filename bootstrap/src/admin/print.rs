//! What an administrator is told: lines for people, or JSON in the shapes of the HTTP contract.

use std::collections::HashMap;

use hango_application::use_cases::KeyText;
use hango_domain::Timestamp;
use hango_domain::people::{ApiKey, Tenant, User};
use hango_ports::identity_store::Credential;
use serde_json::{Value, json};

use crate::system::written;

/// What came of a command.
pub(super) enum Outcome {
    /// A tenant was made, with its owner and his key.
    Tenant(Credential, KeyText),
    /// These are all tenants.
    Tenants(Vec<Tenant>),
    /// A user was added or changed.
    User(User),
    /// These are all users.
    Users(Vec<User>),
    /// A key was made.
    Key(ApiKey, KeyText),
    /// These are all keys, as they are now, and these their users among others.
    Keys {
        keys: Vec<ApiKey>,
        users: Vec<User>,
        now: Timestamp,
    },
    /// That key is revoked.
    Revoked(ApiKey),
}

impl Outcome {
    /// For machines.
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Tenant(made, text) => json!({
                "tenant": tenant(&made.tenant),
                "owner": user(&made.user),
                "api_key": new_key(&made.key, text),
            }),
            Self::Tenants(tenants) => list(tenants.iter().map(tenant)),
            Self::User(changed) => user(changed),
            Self::Users(users) => list(users.iter().map(user)),
            Self::Key(key, text) => new_key(key, text),
            Self::Keys { keys, .. } => list(keys.iter().map(api_key)),
            Self::Revoked(key) => json!({ "id": key.id, "prefix": key.prefix, "revoked": true }),
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Tenant(made, text) => format!(
                "tenant {} {}\nowner {} {}\n{}",
                made.tenant.slug,
                made.tenant.id,
                made.user.email,
                made.user.id,
                shown_once(text)
            ),
            Self::Tenants(tenants) => table(
                ["SLUG", "STATUS", "ID", "NAME"],
                tenants.iter().map(|tenant| {
                    [
                        tenant.slug.clone(),
                        tenant.status.as_str().to_owned(),
                        tenant.id.to_string(),
                        tenant.name.clone(),
                    ]
                }),
            ),
            Self::Users(users) => table(
                ["EMAIL", "ROLE", "STATUS", "ID", "NAME"],
                users.iter().map(|user| {
                    [
                        user.email.clone(),
                        user.role.as_str().to_owned(),
                        user.status.as_str().to_owned(),
                        user.id.to_string(),
                        user.name.clone(),
                    ]
                }),
            ),
            Self::Keys { keys, users, now } => {
                let emails: HashMap<_, _> = users.iter().map(|it| (it.id, &*it.email)).collect();
                let moment = |at: Option<Timestamp>| at.map_or("-".to_owned(), written);
                table(
                    [
                        "PREFIX",
                        "STATE",
                        "CREATED",
                        "EXPIRES",
                        "LAST USED",
                        "USER",
                        "NAME",
                    ],
                    keys.iter().map(|key| {
                        let email = emails.get(&key.user_id).copied().unwrap_or("-");
                        [
                            key.prefix.clone(),
                            state(key, *now).to_owned(),
                            written(key.created_at),
                            moment(key.expires_at),
                            moment(key.last_used_at),
                            email.to_owned(),
                            key.name.clone(),
                        ]
                    }),
                )
            }
            Self::User(user) => format!(
                "user {} {} {} {}\n",
                user.email,
                user.role.as_str(),
                user.status.as_str(),
                user.id
            ),
            Self::Key(key, text) => {
                let end = key.expires_at.map(written);
                let end = end.map(|end| format!("It expires at {end}.\n"));
                shown_once(text) + &end.unwrap_or_default()
            }
            Self::Revoked(key) => format!("revoked {} {}\n", key.prefix, key.name),
        }
    }
}

/// Rows under a head, each column as wide as its widest text; the last one as it is.
fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows);
    let widths: [usize; N] = std::array::from_fn(|column| {
        let texts = lines.iter().map(|line| line[column].chars().count());
        texts.max().unwrap_or(0)
    });
    let mut text = String::new();
    for line in lines {
        let padded = line
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        let line = padded.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// What a key is good for now.
fn state(key: &ApiKey, now: Timestamp) -> &'static str {
    if key.is_valid(now) {
        "active"
    } else if key.revoked_at.is_some() {
        "revoked"
    } else {
        "expired"
    }
}

fn list(items: impl Iterator<Item = Value>) -> Value {
    json!({ "data": items.collect::<Vec<_>>(), "next_cursor": null })
}

fn shown_once(key: &KeyText) -> String {
    format!("key {}\nThe key is not shown again.\n", key.expose())
}

fn tenant(tenant: &Tenant) -> Value {
    json!({
        "id": tenant.id,
        "slug": tenant.slug,
        "name": tenant.name,
        "status": tenant.status,
        "created_at": written(tenant.created_at),
        "updated_at": written(tenant.updated_at),
    })
}

fn user(user: &User) -> Value {
    json!({
        "id": user.id,
        "tenant_id": user.tenant_id,
        "email": user.email,
        "name": user.name,
        "role": user.role,
        "status": user.status,
        "created_at": written(user.created_at),
        "updated_at": written(user.updated_at),
    })
}

fn new_key(key: &ApiKey, text: &KeyText) -> Value {
    let mut shown = api_key(key);
    shown["key"] = text.expose().into();
    shown
}

fn api_key(key: &ApiKey) -> Value {
    json!({
        "id": key.id,
        "tenant_id": key.tenant_id,
        "user_id": key.user_id,
        "name": key.name,
        "prefix": key.prefix,
        "created_at": written(key.created_at),
        "expires_at": key.expires_at.map(written),
        "revoked_at": key.revoked_at.map(written),
        "last_used_at": key.last_used_at.map(written),
    })
}
