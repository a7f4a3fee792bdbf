//! Cursors: where a list goes on. A cursor is opaque to its holder and fits the list and filter it was given for.

use crate::error::StoreError;
use crate::sql::readable;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

const MARK: usize = 8;

/// Why a cursor is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// It is no cursor.
    #[error("not a cursor")]
    Malformed,
    /// It was given for another list or filter.
    #[error("the cursor belongs to another list or filter")]
    OtherFilter,
}

/// One part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// Hand it back for the next part; none at the end.
    pub next: Option<String>,
}

impl<P, T> Page<(P, Result<T, StoreError>)> {
    /// Leaves out the rows that cannot be read, each of which was read beside its place in the list.
    pub(crate) fn readable(self) -> Page<T> {
        Page {
            items: readable(self.items.into_iter().map(|(_, row)| row).collect()),
            next: self.next,
        }
    }
}

/// A position: the sort key and the id that breaks ties.
pub(crate) type Position = (i64, String);

/// Names a list and its filter. Parts are joined with NUL, which no filter value holds.
pub(crate) struct Filter([u8; MARK]);

impl Filter {
    pub fn new(parts: &[&str]) -> Self {
        let digest = Sha256::digest(parts.join("\0"));
        let mut mark = [0; MARK];
        mark.copy_from_slice(&digest[..MARK]);
        Self(mark)
    }

    pub fn write(&self, (key, id): &Position) -> String {
        let bytes = [&self.0[..], &key.to_be_bytes(), id.as_bytes()].concat();
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    pub fn read(&self, cursor: Option<&str>) -> Result<Option<Position>, CursorError> {
        let Some(cursor) = cursor else {
            return Ok(None);
        };
        let bytes = BASE64_URL_SAFE_NO_PAD
            .decode(cursor)
            .map_err(|_| CursorError::Malformed)?;
        let (mark, rest) = bytes
            .split_first_chunk::<MARK>()
            .ok_or(CursorError::Malformed)?;
        let (key, id) = rest
            .split_first_chunk::<8>()
            .ok_or(CursorError::Malformed)?;
        let id = String::from_utf8(id.to_vec()).map_err(|_| CursorError::Malformed)?;
        // PostgreSQL takes no NUL in a text.
        if id.len() > 64 || id.contains('\0') {
            return Err(CursorError::Malformed);
        }
        if *mark != self.0 {
            return Err(CursorError::OtherFilter);
        }
        Ok(Some((i64::from_be_bytes(*key), id)))
    }

    /// Makes a page out of up to `limit + 1` items: the one too many only tells that there is more.
    pub fn page<T>(&self, mut items: Vec<T>, limit: usize, at: impl Fn(&T) -> Position) -> Page<T> {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items
            .last()
            .filter(|_| more)
            .map(|last| self.write(&at(last)));
        Page { items, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_fits_its_own_filter_only() {
        let filter = Filter::new(&["list", "a"]);
        let cursor = filter.write(&(7, "id".into()));
        assert_eq!(filter.read(Some(&cursor)), Ok(Some((7, "id".into()))));
        assert_eq!(filter.read(None), Ok(None));
        let other = Filter::new(&["list", "b"]);
        assert_eq!(other.read(Some(&cursor)), Err(CursorError::OtherFilter));
    }

    #[test]
    fn what_is_no_cursor_is_malformed() {
        let filter = Filter::new(&["list"]);
        let long = filter.write(&(7, "x".repeat(65)));
        for bad in ["", "a", "!!", "AAAA", &long] {
            assert_eq!(filter.read(Some(bad)), Err(CursorError::Malformed), "{bad}");
        }
    }
}
