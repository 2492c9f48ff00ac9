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
use hango_ports::Clock;
use hango_ports::page::{Page, PageRequest};

use crate::cli::{Admin, AdminArgs, AdminKey, AdminTenant, AdminUser, Who};
use crate::config::{Config, Settings};
use crate::store::Store;
use crate::system::{SystemIds, WallClock};
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
    outcome.map_err(|error| explained(error, &named))
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
        Admin::Tenant(AdminTenant::List) => {
            Outcome::Tenants(all(async |page| use_cases.tenants(page).await).await?)
        }
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
        Admin::User(AdminUser::List { tenant }) => {
            let tenant = named.tenant(use_cases, &tenant).await?.id;
            Outcome::Users(all(async |page| use_cases.users_of(tenant, page).await).await?)
        }
        Admin::Key(AdminKey::Create {
            who,
            name,
            expires_at,
        }) => {
            let user = named.user(use_cases, &who).await?;
            let (key, text) = use_cases.create_key(&user, &name, expires_at).await?;
            Outcome::Key(key, text)
        }
        Admin::Key(AdminKey::List { tenant, email }) => {
            let (tenant, user) = match email {
                Some(email) => {
                    let user = named.user(use_cases, &Who { tenant, email }).await?;
                    (user.tenant_id, Some(user.id))
                }
                None => (named.tenant(use_cases, &tenant).await?.id, None),
            };
            Outcome::Keys {
                keys: all(async |page| use_cases.keys_of(tenant, user, page).await).await?,
                users: all(async |page| use_cases.users_of(tenant, page).await).await?,
                now: WallClock.now(),
            }
        }
        Admin::Key(AdminKey::Revoke { key }) => {
            named.key(&key);
            Outcome::Revoked(use_cases.revoke_key(&key).await?)
        }
    })
}

/// Everything of a list.
async fn all<T>(
    read: impl AsyncFn(PageRequest) -> Result<Page<T>, UseCaseError>,
) -> Result<Vec<T>, UseCaseError> {
    let mut found = Vec::new();
    let mut page = PageRequest {
        limit: 200,
        after: None,
    };
    loop {
        let read = read(page).await?;
        found.extend(read.items);
        page.after = read.next;
        if page.after.is_none() {
            return Ok(found);
        }
    }
}

/// What went wrong, with everything that is wrong with what was asked for.
fn explained(error: UseCaseError, named: &Named) -> anyhow::Error {
    match error {
        UseCaseError::NotFound => anyhow::anyhow!("{}", named.missing()),
        UseCaseError::Invalid(faults) => {
            let details = faults.into_iter().map(|fault| {
                let field = fault.pointer.trim_start_matches('/').replace('/', " ");
                format!("{field}: {}", fault.detail)
            });
            anyhow::anyhow!(details.collect::<Vec<_>>().join("; "))
        }
        other => other.into(),
    }
}
