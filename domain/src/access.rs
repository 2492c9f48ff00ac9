//! Who may see and do what: written here once, used by every store and use case.
//!
//! What a caller may not see does not exist for him, so a [`Visibility`] is a filter of reads, and a
//! right to act begins with being able to see.

use serde::{Deserialize, Serialize};

use crate::{ApiKeyId, TenantId, UserId};

/// What a user may do in his tenant.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything, owners included.
    Owner,
    /// Everything but making, changing or disabling owners.
    Admin,
    /// Reads agents and tools; acts on the sessions he created.
    Member,
}

impl Role {
    /// Whether the role sees and changes everything in its tenant.
    #[must_use]
    pub const fn administers(self) -> bool {
        match self {
            Self::Owner | Self::Admin => true,
            Self::Member => false,
        }
    }

    /// The word of the HTTP contract and of the stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

/// An authenticated caller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Scope {
    /// The tenant he acts in.
    pub tenant: TenantId,
    /// Who he is.
    pub user: UserId,
    /// What he may do, as it is now.
    pub role: Role,
    /// The key he came with; `None` when an operator acts on the store itself.
    pub key: Option<ApiKeyId>,
}

/// Which sessions, and what belongs to them, exist for a caller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Visibility {
    /// Only this tenant's.
    pub tenant: TenantId,
    /// Only those this user created; `None` for all of the tenant's.
    pub creator: Option<UserId>,
}

/// What exists for `scope`: everything in the tenant for those who administer it, else what the user
/// created himself.
#[must_use]
pub const fn visibility(scope: &Scope) -> Visibility {
    Visibility {
        tenant: scope.tenant,
        creator: if scope.role.administers() {
            None
        } else {
            Some(scope.user)
        },
    }
}

impl Visibility {
    /// Whether a session of `tenant`, created by `creator`, exists for the caller.
    #[must_use]
    pub fn shows(&self, tenant: TenantId, creator: UserId) -> bool {
        self.tenant == tenant && self.creator.is_none_or(|only| only == creator)
    }
}

/// What is true of a run's creator now: the rights a run executes under are never those of the past.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CreatorNow {
    /// Whether he exists and is active.
    pub active: bool,
    /// His present role.
    pub role: Role,
    /// Whether he created the run's session.
    pub created_session: bool,
}

impl CreatorNow {
    /// Whether a run in his name may execute.
    #[must_use]
    pub const fn may_act(self) -> bool {
        self.active && (self.role.administers() || self.created_session)
    }
}

/// What every write on a run's behalf tells its holder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standing {
    /// Whether the run's end was asked for.
    pub cancel_requested: bool,
    /// What is true of the run's creator now.
    pub creator: CreatorNow,
    /// Whether the tenant may work now.
    pub tenant_active: bool,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn scope(role: Role) -> Scope {
        Scope {
            tenant: TenantId(Uuid::from_u128(1)),
            user: UserId(Uuid::from_u128(10)),
            role,
            key: None,
        }
    }

    #[test]
    fn a_member_sees_only_what_he_created() {
        let seen = visibility(&scope(Role::Member));

        assert!(seen.shows(TenantId(Uuid::from_u128(1)), UserId(Uuid::from_u128(10))));
        assert!(!seen.shows(TenantId(Uuid::from_u128(1)), UserId(Uuid::from_u128(11))));
    }

    #[test]
    fn owners_and_admins_see_all_of_their_tenant_and_nothing_else() {
        for role in [Role::Owner, Role::Admin] {
            let seen = visibility(&scope(role));

            assert!(seen.shows(TenantId(Uuid::from_u128(1)), UserId(Uuid::from_u128(11))));
            assert!(!seen.shows(TenantId(Uuid::from_u128(2)), UserId(Uuid::from_u128(10))));
        }
    }

    #[test]
    fn a_disabled_creator_may_not_act_whatever_his_role() {
        let creator = CreatorNow {
            active: false,
            role: Role::Owner,
            created_session: true,
        };

        assert!(!creator.may_act());
    }

    #[test]
    fn a_demoted_creator_may_act_only_on_his_own_session() {
        let creator = CreatorNow {
            active: true,
            role: Role::Member,
            created_session: false,
        };

        assert!(!creator.may_act());
        assert!(
            CreatorNow {
                created_session: true,
                ..creator
            }
            .may_act()
        );
    }
}
