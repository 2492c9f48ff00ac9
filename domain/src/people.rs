//! Tenants, their users and the users' keys.

use serde::{Deserialize, Serialize};

use crate::access::{CreatorNow, Role};
use crate::{ApiKeyId, TenantId, Timestamp, UserId};

/// A customer of the platform team.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tenant {
    /// Its identity.
    pub id: TenantId,
    /// Its unique name for programs.
    pub slug: String,
    /// Its name for people.
    pub name: String,
    /// Whether it may work.
    pub status: TenantStatus,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// Whether a tenant may work.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TenantStatus {
    /// It may.
    Active,
    /// Its keys are refused, its runs are not claimed and go on when it is active again.
    Suspended,
}

impl TenantStatus {
    /// Every status.
    pub const ALL: [Self; 2] = [Self::Active, Self::Suspended];

    /// The word of the HTTP contract and of the stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
        }
    }
}

/// A person or program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct User {
    /// His identity.
    pub id: UserId,
    /// The tenant.
    pub tenant_id: TenantId,
    /// His address; unique in the tenant.
    pub email: String,
    /// His name.
    pub name: String,
    /// What he may do.
    pub role: Role,
    /// Whether he may act.
    pub status: UserStatus,
    /// When he was added.
    pub created_at: Timestamp,
    /// When he was changed last.
    pub updated_at: Timestamp,
}

impl User {
    /// Whether he is one of those of whom a tenant keeps at least one.
    #[must_use]
    pub fn is_active_owner(&self) -> bool {
        self.role == Role::Owner && self.status == UserStatus::Active
    }

    /// What is true of him as the creator of a run of a session that `session_creator` created.
    #[must_use]
    pub fn as_creator(&self, session_creator: UserId) -> CreatorNow {
        creator_now(self.status, self.role, self.id == session_creator)
    }
}

/// What is true of a run's creator of this status and role, who created the run's session or did not.
#[must_use]
pub fn creator_now(status: UserStatus, role: Role, created_session: bool) -> CreatorNow {
    CreatorNow {
        active: status == UserStatus::Active,
        role,
        created_session,
    }
}

/// Whether a user may act.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserStatus {
    /// He may.
    Active,
    /// His keys are refused, and his runs end.
    Disabled,
}

impl UserStatus {
    /// Every status.
    pub const ALL: [Self; 2] = [Self::Active, Self::Disabled];

    /// The word of the HTTP contract and of the stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }
}

/// A credential, without its secret: of that only the hash is kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ApiKey {
    /// Its identity.
    pub id: ApiKeyId,
    /// The tenant.
    pub tenant_id: TenantId,
    /// Whose it is.
    pub user_id: UserId,
    /// Its name for people.
    pub name: String,
    /// The part by which it is found; 12 characters.
    pub prefix: String,
    /// SHA-256 of the secret part: that is 256 random bits, so no slow hash is needed.
    pub secret_hash: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused; `None` for never.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was used last, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl ApiKey {
    /// Whether it opens anything at `now`.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| end > now)
    }
}

/// Whether who comes with a key may act at `now`: the key opens something, and its user and his tenant may
/// work. Asked when he is let in, and again by each transaction in which he changes something.
#[must_use]
pub fn may_act(key: &ApiKey, user: &User, tenant: &Tenant, now: Timestamp) -> bool {
    key.is_valid(now) && user.status == UserStatus::Active && tenant.status == TenantStatus::Active
}

/// The most characters that a name for people has.
pub const LONGEST_NAME: usize = 200;

/// What is wrong with a name for people.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NameFault {
    /// There is nothing to be read.
    Blank,
    /// It has more than [`LONGEST_NAME`] characters.
    TooLong,
    /// Some of it would be acted upon instead of shown.
    Control,
}

/// What is wrong with `name` as that of a tenant, a user, a key, an agent or a model, which stand in lists
/// and log lines beside others'.
#[must_use]
pub fn name_fault(name: &str) -> Option<NameFault> {
    if name.trim().is_empty() {
        Some(NameFault::Blank)
    } else if name.chars().nth(LONGEST_NAME).is_some() {
        Some(NameFault::TooLong)
    } else if name.chars().any(is_control) {
        Some(NameFault::Control)
    } else {
        None
    }
}

/// Whether mail could be sent there, as far as its look tells: somebody at somewhere, nothing blank.
/// Otherwise an address is whatever its owner says it is, kept and compared as it was written: which part
/// of it means the same in another case, only his mail server knows.
#[must_use]
pub fn is_address(text: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !is_control(c);
    text.len() <= 254
        && text.chars().all(plain)
        && text
            .split_once('@')
            .is_some_and(|(who, host)| !who.is_empty() && !host.is_empty() && !host.contains('@'))
}

/// Whether a character is not shown but changes how what is around it is: a control, the end of a line,
/// or what turns the direction of the text that follows.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_text_that_can_be_read() {
        for good in [
            "A",
            "Ada Lovelace",
            "\u{e9}\u{301} \u{1f469}\u{200d}\u{1f4bb}",
            "\u{645}\u{6cc}\u{200c}\u{62e}",
            "<b>",
            &"\u{1f600}".repeat(LONGEST_NAME),
        ] {
            assert_eq!(name_fault(good), None, "{good:?}");
        }
        for (bad, fault) in [
            (String::new(), NameFault::Blank),
            (" \u{a0}".to_owned(), NameFault::Blank),
            ("a".repeat(LONGEST_NAME + 1), NameFault::TooLong),
            (
                format!("e{}", "\u{301}".repeat(1_000_000)),
                NameFault::TooLong,
            ),
            ("a\r\nb".to_owned(), NameFault::Control),
            ("\u{1b}[2J".to_owned(), NameFault::Control),
            ("a\u{7f}".to_owned(), NameFault::Control),
            ("\u{85}b".to_owned(), NameFault::Control),
            ("exe.\u{202e}fdp".to_owned(), NameFault::Control),
            ("a\u{2067}b".to_owned(), NameFault::Control),
            ("a\u{2028}b".to_owned(), NameFault::Control),
        ] {
            assert_eq!(name_fault(&bad), Some(fault), "{bad:.20?}");
        }
    }

    #[test]
    fn an_address_is_somebody_at_somewhere() {
        for good in ["a@b", "owner@localhost", "\u{e9}t\u{e9}@example.org"] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "",
            "a",
            "@b",
            "a@",
            "a@b@c",
            "a b@c",
            "a@b\n",
            "a@b\u{202e}",
        ] {
            assert!(!is_address(bad), "{bad:?}");
        }
    }
}
