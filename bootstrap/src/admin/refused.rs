//! What an administrator was refused is in the trail of the tenant that he named, as it is when he asks over
//! HTTP. Where he named none that there is, there is no trail, and he is told.

use hango_application::use_cases::{Action, KeyName, RequestContext, UseCaseError, UseCases};
use hango_domain::TenantId;
use hango_domain::people::{Tenant, User};
use uuid::Uuid;

use crate::cli::{Admin, AdminKey, AdminTenant, AdminUser, Who};

/// What a command names, as far as it was found to be there.
#[derive(Default)]
pub(super) struct Named {
    tenant: Option<TenantId>,
    target: Option<Uuid>,
    /// What is true if what was looked for last is not there, and how to see what is.
    missing: String,
}

impl Named {
    /// Finds the tenant of that slug.
    pub(super) async fn tenant(
        &mut self,
        use_cases: &UseCases,
        slug: &str,
    ) -> Result<Tenant, UseCaseError> {
        self.missing = format!(
            "there is no tenant {slug}; `hango admin tenant list` shows all that there are"
        );
        let tenant = use_cases.tenant(slug).await?;
        self.tenant = Some(tenant.id);
        Ok(tenant)
    }

    /// Finds the user of that tenant and address, to change him.
    pub(super) async fn changed_user(
        &mut self,
        use_cases: &UseCases,
        who: &Who,
    ) -> Result<User, UseCaseError> {
        let user = self.user(use_cases, who).await?;
        self.target = Some(user.id.0);
        Ok(user)
    }

    /// Finds the user of that tenant and address.
    pub(super) async fn user(
        &mut self,
        use_cases: &UseCases,
        who: &Who,
    ) -> Result<User, UseCaseError> {
        let Who { tenant, email } = who;
        let found = self.tenant(use_cases, tenant).await?;
        self.missing = format!(
            "tenant {tenant} has no user {email}; `hango admin user list --tenant {tenant}` shows all that \
             there are"
        );
        use_cases.user_by_email(found.id, email).await
    }

    /// Notes which key is looked for.
    pub(super) fn key(&mut self, key: &KeyName) {
        self.missing = format!(
            "there is no key of {key}; `hango admin key list --tenant SLUG` shows a tenant's keys"
        );
    }

    /// What to tell whoever named what is not there.
    pub(super) fn missing(&self) -> &str {
        &self.missing
    }
}

/// What a command does; `None` where it only reads.
pub(super) const fn action(what: &Admin) -> Option<Action> {
    Some(match what {
        Admin::Tenant(AdminTenant::Create { .. }) => Action::TenantCreate,
        Admin::User(AdminUser::Create { .. }) => Action::UserCreate,
        Admin::User(AdminUser::Disable(_)) => Action::UserUpdate,
        Admin::Key(AdminKey::Create { .. }) => Action::KeyCreate,
        Admin::Key(AdminKey::Revoke { .. }) => Action::KeyRevoke,
        Admin::Tenant(AdminTenant::List)
        | Admin::User(AdminUser::List { .. })
        | Admin::Key(AdminKey::List { .. }) => return None,
    })
}

/// Notes that a command was refused.
pub(super) async fn note(
    use_cases: &UseCases,
    action: Option<Action>,
    named: &Named,
    error: &UseCaseError,
) {
    let status = hango_http::refusal_status(error);
    let (Some(action), Some(tenant), Some(status)) = (action, named.tenant, status) else {
        return;
    };
    let nobody = RequestContext::default();
    let noted = use_cases
        .record_operators_refusal(&nobody, action, tenant, named.target, status)
        .await;
    if let Err(error) = noted {
        tracing::error!(%error, "a refusal was not recorded");
    }
}
