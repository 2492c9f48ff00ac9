//! `hango admin`: tenants, users and keys, straight on the store, beside a running server or without
//! one.

mod print;
mod refused;

use std::io::{self, Write};
use std::sync::Arc;

use hango_application::live::LiveEvents;
use hango_application::signals::Signals;
use hango_application::use_cases::{
    ApiSettings, Catalog, Input, NewTenant, NewUser, RequestContext, UseCaseError, UseCases,
};
use hango_domain::people::Tenant;
use hango_ports::Clock;
use hango_ports::page::PageRequest;

use crate::cli::{Admin, AdminArgs, AdminKey, AdminTenant, AdminUser};
use crate::config::{Config, Settings};
use crate::store::Store;
use crate::system::SystemIds;
use print::Outcome;
use refused::Named;

/// Does what was asked for, and prints what came of it.
pub(crate) async fn run(
    config: &Config,
    args: AdminArgs,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<()> {
    let store = Store::open(&config.settings, Arc::clone(&clock), false).await?;
    let outcome = on(&store, clock, &config.settings, args.what).await;
    store.close().await;
    let outcome = outcome?;
    let text = if args.json {
        format!("{:#}\n", outcome.json())
    } else {
        outcome.text()
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

async fn on(
    store: &Store,
    clock: Arc<dyn Clock>,
    settings: &Settings,
    what: Admin,
) -> anyhow::Result<Outcome> {
    let pending = store.pending().await.map_err(anyhow::Error::from)?;
    anyhow::ensure!(
        pending.is_empty(),
        "the schema is {} migrations behind; run `hango migrate` first",
        pending.len()
    );
    let use_cases = use_cases(store, clock, settings);
    let action = refused::action(&what);
    let mut named = Named::default();
    let outcome = perform(&use_cases, what, &mut named).await;
    if let Err(error) = &outcome {
        refused::note(&use_cases, action, &named, error).await;
    }
    outcome.map_err(explained)
}

/// The use cases without anybody to execute or watch: an administrator needs neither.
fn use_cases(store: &Store, clock: Arc<dyn Clock>, settings: &Settings) -> UseCases {
    UseCases::new(
        store.stores(),
        Arc::new(SystemIds),
        clock,
        Arc::new(Signals::new(store.wake_up())),
        Arc::new(LiveEvents::default()),
        Catalog::default(),
        ApiSettings::from(settings),
    )
}

async fn perform(
    use_cases: &UseCases,
    what: Admin,
    named: &mut Named,
) -> Result<Outcome, UseCaseError> {
    Ok(match what {
        Admin::Tenant(AdminTenant::Create {
            slug,
            name,
            owner_email,
        }) => {
            let new = NewTenant {
                slug,
                name,
                owner_email,
                owner_name: None,
            };
            let nobody = RequestContext::default();
            let (made, key) = use_cases.create_tenant(&nobody, Input::new(new)).await?;
            Outcome::Tenant(made, key)
        }
        Admin::Tenant(AdminTenant::List) => Outcome::Tenants(tenants(use_cases).await?),
        Admin::User(AdminUser::Create { who, role }) => {
            let tenant = named.tenant(use_cases, &who.tenant).await?;
            let new = NewUser {
                email: who.email,
                name: None,
                role: role.into(),
            };
            Outcome::User(use_cases.create_user(tenant.id, Input::new(new)).await?)
        }
        Admin::User(AdminUser::Disable(who)) => {
            let user = named.changed_user(use_cases, &who).await?;
            Outcome::User(use_cases.disable_user(user.tenant_id, user.id).await?)
        }
        Admin::Key(AdminKey::Create { who, name }) => {
            let user = named.user(use_cases, &who).await?;
            let (key, text) = use_cases.create_key(&user, &name, None).await?;
            Outcome::Key(key, text)
        }
        Admin::Key(AdminKey::Revoke { prefix }) => {
            use_cases.revoke_key(&prefix).await?;
            Outcome::Revoked(prefix)
        }
    })
}

/// Every tenant, newest first.
async fn tenants(use_cases: &UseCases) -> Result<Vec<Tenant>, UseCaseError> {
    let mut tenants = Vec::new();
    let mut page = PageRequest {
        limit: 200,
        after: None,
    };
    loop {
        let read = use_cases.tenants(page).await?;
        tenants.extend(read.items);
        page.after = read.next;
        if page.after.is_none() {
            return Ok(tenants);
        }
    }
}

/// What went wrong, with everything that is wrong with what was asked for.
fn explained(error: UseCaseError) -> anyhow::Error {
    match error {
        UseCaseError::NotFound => anyhow::anyhow!("there is no such tenant, user or key"),
        UseCaseError::Invalid(faults) => {
            let details: Vec<_> = faults.into_iter().map(|fault| fault.detail).collect();
            anyhow::anyhow!(details.join("; "))
        }
        other => other.into(),
    }
}
