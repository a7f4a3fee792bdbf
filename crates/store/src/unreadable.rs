//! What of the database could not be read: each place is told once in the log and counted once.

use crate::error::StoreError;
use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Places that are remembered. A database that is damaged beyond this needs no longer list.
const MOST: usize = 4_096;

type Place = (&'static str, String, &'static str);

static MET: LazyLock<Mutex<BTreeSet<Place>>> = LazyLock::new(Mutex::default);

/// Notes a value that cannot be read.
pub(crate) fn note(error: &StoreError) {
    if let StoreError::Corrupt { table, row, column } = error {
        let mut met = MET.lock().unwrap_or_else(PoisonError::into_inner);
        if met.len() < MOST && met.insert((table, row.clone(), column)) {
            tracing::error!(%error, "what is stored there is left out of every answer");
        }
    }
}

/// How many stored values this process found that cannot be read, up to a bound of 4,096.
#[must_use]
pub fn unreadable_met() -> u64 {
    let met = MET.lock().unwrap_or_else(PoisonError::into_inner);
    u64::try_from(met.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_once_however_often_it_is_met() {
        let before = unreadable_met();
        for _ in 0..3 {
            note(&StoreError::corrupt("t", "a row of this test alone", "c"));
        }
        note(&StoreError::Ambiguous);
        assert_eq!(unreadable_met(), before + 1);
    }
}
