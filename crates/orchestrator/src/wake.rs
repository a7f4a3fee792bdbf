//! Who waits for which intervention.
//!
//! One map for the process, keyed by intervention. A waiter costs no query and no timer of its own: it sleeps on its
//! intervention's slot and on the tick that its wait ends with, and one task turns the ticks over.

use crate::known::Shown;
use fuse_api::ids::InterventionId;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How finely the ends of waits are told apart.
const TICK: Duration = Duration::from_millis(50);

type News = Option<Arc<Shown>>;

struct Slot {
    news: watch::Sender<News>,
    waiters: usize,
}

/// The map. Clones share it.
#[derive(Clone)]
pub struct WakeMap {
    slots: Arc<Mutex<HashMap<InterventionId, Slot>>>,
    ticks: Arc<Ticks>,
}

impl Default for WakeMap {
    fn default() -> Self {
        Self::new()
    }
}

impl WakeMap {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self {
            slots: Arc::default(),
            ticks: Arc::new(Ticks {
                epoch: Instant::now(),
                buckets: Mutex::default(),
                added: tokio::sync::Notify::new(),
            }),
        }
    }

    /// Starts to listen. Whoever then reads the intervention misses no change: what is not in the read comes here.
    #[must_use]
    pub fn listen(&self, id: &InterventionId) -> Listener {
        let mut slots = lock(&self.slots);
        let slot = slots.entry(id.clone()).or_insert_with(|| Slot {
            news: watch::Sender::new(None),
            waiters: 0,
        });
        slot.waiters += 1;
        Listener {
            map: self.clone(),
            id: id.clone(),
            news: slot.news.subscribe(),
        }
    }

    /// Tells every waiter of the record's intervention how it now stands.
    pub fn publish(&self, shown: &Arc<Shown>) {
        if let Some(slot) = lock(&self.slots).get(&shown.record.view.id) {
            slot.news.send_modify(|news| {
                let stale = news
                    .as_ref()
                    .is_some_and(|old| old.record.version > shown.record.version);
                if !stale {
                    *news = Some(Arc::clone(shown));
                }
            });
        }
    }

    /// Everything that somebody waits for.
    #[must_use]
    pub fn awaited(&self) -> Vec<InterventionId> {
        lock(&self.slots).keys().cloned().collect()
    }

    /// Turns the ticks over, for as long as the process lives.
    pub async fn run_ticks(&self) {
        self.ticks.run().await;
    }
}

/// One waiter's place in the map.
pub struct Listener {
    map: WakeMap,
    id: InterventionId,
    news: watch::Receiver<News>,
}

impl Listener {
    /// Sleeps until the intervention is settled, or `wait` is over, or `stop` says so. Gives the newest record heard of, if any.
    pub async fn settled(&mut self, wait: Duration, stop: &mut watch::Receiver<bool>) -> News {
        let mut tick = self.map.ticks.at(wait);
        loop {
            let newest = self.news.borrow_and_update().clone();
            if newest.as_ref().is_some_and(|n| n.record.is_settled()) || *stop.borrow() {
                return newest;
            }
            tokio::select! {
                changed = self.news.changed() => if changed.is_err() { return newest },
                _ = tick.changed() => return self.news.borrow().clone(),
                _ = stop.changed() => return self.news.borrow().clone(),
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut slots = lock(&self.map.slots);
        if let Some(slot) = slots.get_mut(&self.id) {
            slot.waiters -= 1;
            if slot.waiters == 0 {
                slots.remove(&self.id);
            }
        }
    }
}

/// The ends of all waits, in steps of [`TICK`]; everybody whose wait ends in the same step shares one signal.
struct Ticks {
    epoch: Instant,
    buckets: Mutex<BTreeMap<u64, watch::Sender<()>>>,
    added: tokio::sync::Notify,
}

impl Ticks {
    fn at(&self, wait: Duration) -> watch::Receiver<()> {
        let end = Instant::now() + wait;
        let millis = u64::try_from((end - self.epoch).as_millis()).unwrap_or(u64::MAX);
        let bucket = millis.div_ceil(TICK.as_millis() as u64);
        let mut buckets = lock(&self.buckets);
        let earliest = buckets.keys().next().is_none_or(|&first| bucket < first);
        let signal = buckets
            .entry(bucket)
            .or_insert_with(|| watch::Sender::new(()))
            .subscribe();
        drop(buckets);
        if earliest {
            self.added.notify_one();
        }
        signal
    }

    async fn run(&self) {
        loop {
            let next = lock(&self.buckets).keys().next().copied();
            match next {
                None => self.added.notified().await,
                Some(bucket) => {
                    let end = self.epoch + TICK * u32::try_from(bucket).unwrap_or(u32::MAX);
                    tokio::select! {
                        () = tokio::time::sleep_until(end) => {
                            // Dropping the sender is the signal.
                            lock(&self.buckets).remove(&bucket);
                        }
                        () = self.added.notified() => {}
                    }
                }
            }
        }
    }
}

/// A panic elsewhere leaves a map that is still whole: every critical section here is a few plain map operations.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;
    use fuse_api::intervention::State;

    fn stop() -> (watch::Sender<bool>, watch::Receiver<bool>) {
        watch::channel(false)
    }

    fn running() -> WakeMap {
        let map = WakeMap::new();
        let ticks = map.clone();
        tokio::spawn(async move { ticks.run_ticks().await });
        map
    }

    #[tokio::test]
    async fn a_change_wakes_every_waiter_and_leaves_no_trace() {
        let map = running();
        let settled = Shown::new(Arc::new(record(State::Approved)));
        let mut waiting = Vec::new();
        for _ in 0..5 {
            let mut listener = map.listen(&settled.record.view.id);
            waiting.push(tokio::spawn(async move {
                let (_keep, mut stop) = stop();
                listener.settled(Duration::from_secs(20), &mut stop).await
            }));
        }
        map.publish(&settled);
        for waiter in waiting {
            let heard = waiter.await.expect("joined").expect("heard of it");
            assert!(Arc::ptr_eq(&heard, &settled), "all share one");
        }
        assert!(map.awaited().is_empty());
    }

    // check: WAIT-4
    #[tokio::test]
    async fn ten_thousand_waiters_are_woken_together_and_share_one_tick() {
        let map = running();
        let settled: Vec<Arc<Shown>> = (0..100)
            .map(|_| Shown::new(Arc::new(record(State::Approved))))
            .collect();
        let (_keep, stop) = stop();
        let mut waiting = Vec::new();
        for n in 0..10_000 {
            let mut listener = map.listen(&settled[n % 100].record.view.id);
            let mut stop = stop.clone();
            waiting.push(tokio::spawn(async move {
                listener.settled(Duration::from_secs(50), &mut stop).await
            }));
        }
        tokio::task::yield_now().await;
        assert!(
            lock(&map.ticks.buckets).len() < 100,
            "waits that end together share a tick"
        );
        for record in &settled {
            map.publish(record);
        }
        for waiter in waiting {
            assert!(waiter.await.expect("joined").is_some());
        }
        assert!(map.awaited().is_empty());
    }

    #[tokio::test]
    async fn a_wait_ends_on_time_without_news() {
        let map = running();
        let pending = record(State::Pending);
        let mut listener = map.listen(&pending.view.id);
        let (_keep, mut stop) = stop();
        let begun = std::time::Instant::now();
        let heard = listener
            .settled(Duration::from_millis(120), &mut stop)
            .await;
        assert!(heard.is_none());
        assert!(begun.elapsed() >= Duration::from_millis(115));
    }

    #[tokio::test]
    async fn a_stop_answers_at_once() {
        let map = running();
        let pending = record(State::Pending);
        let mut listener = map.listen(&pending.view.id);
        let (sender, mut stop) = stop();
        let waiter =
            tokio::spawn(async move { listener.settled(Duration::from_secs(50), &mut stop).await });
        sender.send_replace(true);
        assert!(waiter.await.expect("joined").is_none());
    }
}
