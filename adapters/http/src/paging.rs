//! Lists in pieces. A cursor is a position with a checksum over itself, the list and its filters; it
//! carries no rights.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hango_application::use_cases::Piece;
use hango_domain::Timestamp;
use hango_ports::page::{Page, PageRequest, Position};
use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::problem::{Code, Problem};

const CHECKSUM: usize = 8;

/// Which piece of which list.
pub(crate) struct Paging {
    /// What all of the list's cursors have in common.
    list: Sha256,
    /// The most rows.
    pub(crate) limit: u32,
    after: Option<[u8; 24]>,
}

/// A piece of a list, as callers see it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = List)]
pub(crate) struct ListBody<T> {
    data: Vec<T>,
    next_cursor: Option<String>,
}

impl Paging {
    /// The most rows that can be asked for.
    pub(crate) const MOST: u64 = 200;
    const DEFAULT: u64 = 50;

    pub(crate) fn new(
        list: &str,
        filters: &[(String, String)],
        limit: Option<u64>,
        cursor: Option<&str>,
    ) -> Result<Self, Problem> {
        let mut filters = filters.to_vec();
        filters.sort();
        let mut digest = Sha256::new();
        for part in std::iter::once(list).chain(filters.iter().flat_map(|(k, v)| [&**k, &**v])) {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        let limit = limit.unwrap_or(Self::DEFAULT);
        let mut paging = Self {
            list: digest,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            after: None,
        };
        if let Some(cursor) = cursor {
            let after = paging.position(cursor).ok_or_else(|| {
                let detail = "the cursor is not one of this list with these filters";
                Problem::new(Code::InvalidCursor, detail)
            })?;
            paging.after = Some(after);
        }
        Ok(paging)
    }

    /// The piece of a list that is ordered by age.
    pub(crate) fn request(&self) -> PageRequest {
        let after = self.after.map(|after| {
            let (at, id) = split(after);
            Position {
                at: Timestamp::from_micros(i64::from_be_bytes(at)),
                id: Uuid::from_bytes(id),
            }
        });
        PageRequest {
            limit: self.limit,
            after,
        }
    }

    /// The number behind which a numbered list goes on; 0 from the beginning.
    pub(crate) fn after_number(&self) -> u64 {
        self.after
            .map_or(0, |after| u64::from_be_bytes(split(after).0))
    }

    /// A page of a list that is ordered by age.
    pub(crate) fn page<T, B: From<T>>(&self, page: Page<T>) -> ListBody<B> {
        let next = page.next.map(|position| {
            let mut after = [0; 24];
            after[..8].copy_from_slice(&position.at.as_micros().to_be_bytes());
            after[8..].copy_from_slice(position.id.as_bytes());
            self.cursor(after)
        });
        ListBody {
            data: page.items.into_iter().map(B::from).collect(),
            next_cursor: next,
        }
    }

    /// A page of a list that is there whole.
    pub(crate) fn slice<T, B: From<T>>(&self, items: Vec<T>) -> ListBody<B> {
        let after = usize::try_from(self.after_number()).unwrap_or(usize::MAX);
        let mut rows: Vec<_> = (1..).zip(items).skip(after).collect();
        let limit = self.limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let piece = Piece { rows, more };
        self.numbered(piece, |(number, _)| *number, |(_, item)| B::from(item))
    }

    /// A page of a numbered list.
    pub(crate) fn numbered<T, B>(
        &self,
        piece: Piece<T>,
        number: impl Fn(&T) -> u64,
        body: impl Fn(T) -> B,
    ) -> ListBody<B> {
        let Piece { rows, more } = piece;
        let last = rows.last().map(number).filter(|_| more);
        let next = last.map(|last| {
            let mut after = [0; 24];
            after[..8].copy_from_slice(&last.to_be_bytes());
            self.cursor(after)
        });
        ListBody {
            data: rows.into_iter().map(body).collect(),
            next_cursor: next,
        }
    }

    fn cursor(&self, after: [u8; 24]) -> String {
        let mut bytes = after.to_vec();
        bytes.extend(self.checksum(after));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn position(&self, cursor: &str) -> Option<[u8; 24]> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (after, checksum) = bytes.split_first_chunk::<24>()?;
        (checksum == self.checksum(*after)).then_some(*after)
    }

    fn checksum(&self, after: [u8; 24]) -> [u8; CHECKSUM] {
        let digest: [u8; 32] = self.list.clone().chain_update(after).finalize().into();
        let mut checksum = [0; CHECKSUM];
        checksum.copy_from_slice(&digest[..CHECKSUM]);
        checksum
    }
}

fn split(after: [u8; 24]) -> ([u8; 8], [u8; 16]) {
    let (mut number, mut id) = ([0; 8], [0; 16]);
    number.copy_from_slice(&after[..8]);
    id.copy_from_slice(&after[8..]);
    (number, id)
}
