//! What was read or written a moment ago, kept in memory: bounded, and never older than what was heard of since.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Changes are told apart by so many marks; keys that share one only cost each other a read.
const MARKS: usize = 256;

/// Taken before a read, so that what changes while it runs is not overwritten by what it finds.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    mark: u64,
    at: Instant,
}

/// Values by key, up to a weight. The ones not asked for lately go first.
pub struct Memory<K, V>(Mutex<Inner<K, V>>);

struct Inner<K, V> {
    young: HashMap<K, Kept<V>>,
    old: HashMap<K, Kept<V>>,
    young_weight: usize,
    half: usize,
    marks: [u64; MARKS],
    hasher: RandomState,
}

struct Kept<V> {
    value: V,
    weight: usize,
    seen: Instant,
    /// Somebody reads it again before it is too old.
    renewing: bool,
}

impl<K: Eq + Hash, V: Clone> Memory<K, V> {
    /// An empty one that holds up to this weight.
    pub fn new(capacity: usize) -> Self {
        Self(Mutex::new(Inner {
            young: HashMap::new(),
            old: HashMap::new(),
            young_weight: 0,
            half: capacity / 2,
            marks: [0; MARKS],
            hasher: RandomState::new(),
        }))
    }

    /// What is kept, and how long ago it was seen to be so.
    pub fn get(&self, key: &K, now: Instant) -> Option<(V, Duration)> {
        let mut inner = self.lock();
        if let Some((key, kept)) = inner.old.remove_entry(key) {
            inner.keep(key, kept);
        }
        let kept = inner.young.get(key)?;
        Some((kept.value.clone(), now.saturating_duration_since(kept.seen)))
    }

    /// Whether nobody else has been told so since it was read: the caller then reads it again.
    pub fn is_first_to_renew(&self, key: &K) -> bool {
        let mut inner = self.lock();
        let kept = inner.young.get_mut(key);
        kept.is_some_and(|kept| !std::mem::replace(&mut kept.renewing, true))
    }

    /// To be taken before a value is read that is then [`learn`](Self::learn)ed.
    pub fn ticket(&self, key: &K, now: Instant) -> Ticket {
        let inner = self.lock();
        Ticket {
            mark: inner.marks[inner.mark_of(key)],
            at: now,
        }
    }

    /// Keeps what was read, unless its key changed since the ticket was taken. `older` tells whether what is kept is older than
    /// this.
    pub fn learn(
        &self,
        key: K,
        value: V,
        weight: usize,
        ticket: Ticket,
        older: impl FnOnce(&V) -> bool,
    ) {
        let mut inner = self.lock();
        let outdated = inner.find(&key).is_none_or(|kept| older(&kept.value));
        if !outdated {
            return;
        }
        if inner.marks[inner.mark_of(&key)] == ticket.mark {
            inner.replace(key, value, weight, ticket.at);
        } else {
            inner.remove(&key);
        }
    }

    /// Keeps what was just put on record here, unless what is kept is newer.
    pub fn put(
        &self,
        key: K,
        value: V,
        weight: usize,
        now: Instant,
        older: impl FnOnce(&V) -> bool,
    ) {
        let mut inner = self.lock();
        if inner.find(&key).is_none_or(|kept| older(&kept.value)) {
            inner.changed(&key);
            inner.replace(key, value, weight, now);
        }
    }

    /// It changed elsewhere.
    pub fn forget(&self, key: &K) {
        let mut inner = self.lock();
        inner.changed(key);
        inner.remove(key);
    }

    /// All of these may have changed elsewhere.
    pub fn forget_where(&self, these: impl Fn(&V) -> bool) {
        let mut inner = self.lock();
        // What is being read just now may be one of them.
        inner.all_changed();
        inner.young.retain(|_, kept| !these(&kept.value));
        inner.old.retain(|_, kept| !these(&kept.value));
        inner.young_weight = inner.young.values().map(|kept| kept.weight).sum();
    }

    /// Anything may have changed elsewhere.
    pub fn forget_all(&self) {
        let mut inner = self.lock();
        inner.all_changed();
        inner.young = HashMap::new();
        inner.old = HashMap::new();
        inner.young_weight = 0;
    }

    /// A panic elsewhere leaves a memory that is still whole: every critical section is a few plain map operations.
    fn lock(&self) -> MutexGuard<'_, Inner<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, V> Inner<K, V> {
    fn mark_of(&self, key: &K) -> usize {
        self.hasher.hash_one(key) as usize % MARKS
    }

    fn changed(&mut self, key: &K) {
        let mark = self.mark_of(key);
        self.marks[mark] += 1;
    }

    fn all_changed(&mut self) {
        for mark in &mut self.marks {
            *mark += 1;
        }
    }

    fn find(&self, key: &K) -> Option<&Kept<V>> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    fn remove(&mut self, key: &K) {
        if let Some(kept) = self.young.remove(key) {
            self.young_weight -= kept.weight;
        }
        self.old.remove(key);
    }

    fn replace(&mut self, key: K, value: V, weight: usize, seen: Instant) {
        self.remove(&key);
        let kept = Kept {
            value,
            weight,
            seen,
            renewing: false,
        };
        self.keep(key, kept);
    }

    fn keep(&mut self, key: K, kept: Kept<V>) {
        if kept.weight > self.half {
            return;
        }
        if self.young_weight + kept.weight > self.half {
            self.old = std::mem::take(&mut self.young);
            self.young_weight = 0;
        }
        self.young_weight += kept.weight;
        self.young.insert(key, kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory<u32, u32> {
        Memory::new(100)
    }

    fn get(memory: &Memory<u32, u32>, key: u32) -> Option<u32> {
        memory.get(&key, Instant::now()).map(|(value, _)| value)
    }

    fn put(memory: &Memory<u32, u32>, key: u32, value: u32) {
        memory.put(key, value, 1, Instant::now(), |old| *old < value);
    }

    #[test]
    fn what_changes_while_it_is_read_is_not_overwritten_by_what_was_read() {
        let memory = memory();
        let before = memory.ticket(&1, Instant::now());
        memory.forget(&1);
        memory.learn(1, 10, 1, before, |_| true);
        assert_eq!(get(&memory, 1), None);
        let after = memory.ticket(&1, Instant::now());
        memory.learn(1, 11, 1, after, |_| true);
        assert_eq!(get(&memory, 1), Some(11));
        for everything in [Memory::forget_all, |m: &Memory<u32, u32>| {
            m.forget_where(|_| false);
            m.forget(&1);
        }] {
            let before = memory.ticket(&1, Instant::now());
            everything(&memory);
            memory.learn(1, 12, 1, before, |_| true);
            assert_eq!(get(&memory, 1), None);
        }
    }

    #[test]
    fn an_older_value_never_replaces_a_newer_one() {
        let memory = memory();
        put(&memory, 1, 3);
        put(&memory, 1, 2);
        assert_eq!(get(&memory, 1), Some(3));
        let ticket = memory.ticket(&1, Instant::now());
        memory.learn(1, 2, 1, ticket, |old| *old < 2);
        assert_eq!(get(&memory, 1), Some(3));
    }

    #[test]
    fn a_read_that_was_overtaken_still_tells_that_what_is_kept_is_old() {
        let memory = memory();
        let ticket = memory.ticket(&1, Instant::now());
        put(&memory, 1, 2);
        memory.learn(1, 3, 1, ticket, |old| *old < 3);
        assert_eq!(get(&memory, 1), None);
    }

    #[test]
    fn its_weight_is_bounded_and_what_is_asked_for_stays() {
        let memory = memory();
        put(&memory, 0, 0);
        for key in 1..10_000 {
            put(&memory, key, key);
            assert_eq!(get(&memory, 0), Some(0));
        }
        let inner = memory.lock();
        assert!(inner.young.len() + inner.old.len() <= 101);
        drop(inner);
        memory.put(7, 7, 51, Instant::now(), |_| true);
        assert_eq!(get(&memory, 7), None, "what is large is not kept");
    }

    #[test]
    fn the_age_counts_from_before_the_read() {
        let memory = memory();
        let begun = Instant::now();
        let ticket = memory.ticket(&1, begun);
        memory.learn(1, 1, 1, ticket, |_| true);
        let later = begun + Duration::from_secs(3);
        assert_eq!(memory.get(&1, later), Some((1, Duration::from_secs(3))));
    }
}
