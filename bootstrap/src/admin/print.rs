//! What an administrator is told: lines for people, or JSON in the shapes of the HTTP contract.

use std::fmt::Write;

use hango_application::use_cases::KeyText;
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
    /// A key was made.
    Key(ApiKey, KeyText),
    /// The key of that prefix is revoked.
    Revoked(String),
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
            Self::Tenants(tenants) => json!({
                "data": tenants.iter().map(tenant).collect::<Vec<_>>(),
                "next_cursor": null,
            }),
            Self::User(changed) => user(changed),
            Self::Key(key, text) => new_key(key, text),
            Self::Revoked(prefix) => json!({ "prefix": prefix, "revoked": true }),
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
            Self::Tenants(tenants) => {
                let mut lines = String::new();
                for Tenant {
                    slug,
                    status,
                    id,
                    name,
                    ..
                } in tenants
                {
                    // Writing to a string cannot fail.
                    let _ = writeln!(lines, "{slug} {} {id} {name}", status.as_str());
                }
                lines
            }
            Self::User(user) => format!(
                "user {} {} {} {}\n",
                user.email,
                user.role.as_str(),
                user.status.as_str(),
                user.id
            ),
            Self::Key(_, text) => shown_once(text),
            Self::Revoked(prefix) => format!("revoked {prefix}\n"),
        }
    }
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
    json!({
        "id": key.id,
        "tenant_id": key.tenant_id,
        "user_id": key.user_id,
        "name": key.name,
        "prefix": key.prefix,
        "key": text.expose(),
        "created_at": written(key.created_at),
        "expires_at": key.expires_at.map(written),
        "revoked_at": key.revoked_at.map(written),
        "last_used_at": key.last_used_at.map(written),
    })
}
