//! Who may see and do what: written here once, used by every store and use case.
//!
//! What a caller may not see does not exist for him, so a [`Visibility`] is a filter of reads, and a
//! right to act begins with being able to see.

use serde::{Deserialize, Serialize};

use crate::people::{User, UserStatus};
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
    /// Every role, from the most to the least that it may do.
    pub const ALL: [Self; 3] = [Self::Owner, Self::Admin, Self::Member];

    /// Whether the role sees and changes everything in its tenant.
    #[must_use]
    pub const fn administers(self) -> bool {
        match self {
            Self::Owner | Self::Admin => true,
            Self::Member => false,
        }
    }

    /// Whether who has this role may make users of `other`, change them, and speak for them: an admin who
    /// had a key of an owner would be one.
    #[must_use]
    pub const fn manages(self, other: Self) -> bool {
        match self {
            Self::Owner => true,
            Self::Admin => !matches!(other, Self::Owner),
            Self::Member => false,
        }
    }

    /// Whether who has this role may do all that `other` may.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self == other || self.manages(other)
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

impl Scope {
    /// Whether a user of the tenant, and his keys, exist for the caller.
    #[must_use]
    pub fn sees_user(&self, user: UserId) -> bool {
        self.role.administers() || self.user == user
    }

    /// Whether the caller may name that user, and make keys for him.
    #[must_use]
    pub fn may_act_for(&self, user: &User) -> bool {
        self.user == user.id || self.role.manages(user.role)
    }

    /// Whether the caller may change that user, as he is now, to what is given. Nobody's role or status is
    /// his own to set, and nobody gives a role that he could not take away.
    #[must_use]
    pub fn may_change(&self, user: &User, role: Option<Role>, status: Option<UserStatus>) -> bool {
        if role.is_none() && status.is_none() {
            return self.may_act_for(user);
        }
        self.role.manages(user.role) && role.is_none_or(|role| self.role.manages(role))
    }
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
    use crate::Timestamp;

    const ROLES: [Role; 3] = [Role::Owner, Role::Admin, Role::Member];

    /// The caller himself for 10, somebody else for any other number.
    fn user(number: u128, role: Role) -> User {
        User {
            id: UserId(Uuid::from_u128(number)),
            tenant_id: TenantId(Uuid::from_u128(1)),
            email: String::new(),
            name: String::new(),
            role,
            status: UserStatus::Active,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
        }
    }

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

    #[test]
    fn a_member_sees_himself_and_names_himself_and_no_more() {
        let (himself, other) = (user(10, Role::Member), user(11, Role::Member));
        let member = scope(Role::Member);

        assert!(member.sees_user(himself.id) && !member.sees_user(other.id));
        assert!(member.may_change(&himself, None, None));
        assert!(!member.may_change(&himself, Some(Role::Member), None));
        assert!(!member.may_change(&himself, None, Some(UserStatus::Active)));
        assert!(!member.may_change(&other, None, None));
        assert!(member.may_act_for(&himself) && !member.may_act_for(&other));
    }

    #[test]
    fn only_an_owner_makes_changes_or_speaks_for_an_owner() {
        for has in ROLES {
            let other = user(11, has);
            for (by, may) in [(Role::Owner, true), (Role::Admin, has != Role::Owner)] {
                let by = scope(by);
                assert!(by.sees_user(other.id));
                assert_eq!(by.may_act_for(&other), may, "{by:?} {has:?}");
                assert_eq!(by.may_change(&other, None, None), may);
                let disabled = Some(UserStatus::Disabled);
                assert_eq!(by.may_change(&other, None, disabled), may);
                for given in ROLES {
                    let may = may && by.role.manages(given);
                    assert_eq!(by.may_change(&other, Some(given), None), may);
                }
            }
        }
        assert!(!Role::Admin.manages(Role::Owner) && Role::Owner.manages(Role::Owner));
    }

    #[test]
    fn an_owner_or_admin_may_step_down() {
        for role in [Role::Owner, Role::Admin] {
            let himself = user(10, role);
            assert!(scope(role).may_change(&himself, Some(Role::Member), None));
        }
    }
}
