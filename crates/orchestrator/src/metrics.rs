//! The figures that an operator watches. Recording one costs a few atomic operations; nothing here waits.
//!
//! Names are the public part: `docs/operating.md` says which of them to page on.

use fuse_api::environment::EnvState;
use fuse_api::intervention::{Kind, Outcome};
use fuse_api::time::Timestamp;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;

type Label = [(&'static str, &'static str); 1];
type Call = [(&'static str, &'static str); 4];
type Timed = [(&'static str, &'static str); 3];

/// All figures of one process. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    requests: Family<Call, Counter>,
    request_seconds: Family<Timed, Histogram, fn() -> Histogram>,
    connections: Gauge,
    raised: Family<Label, Counter>,
    decided: Family<Label, Counter>,
    expired: Counter,
    expired_late: Histogram,
    cancelled: Counter,
    held: Counter,
    denied: Counter,
    notified: Counter,
    may_have_run: Counter,
    exec_seconds: Histogram,
    exec_failures: Counter,
    create_seconds: Histogram,
    parked: Gauge,
    pending: Family<Label, Gauge>,
    overdue: Gauge,
    commit_seconds: Histogram,
    database_errors: Counter,
    environments: Family<Label, Gauge>,
    chain_broken: Gauge,
    unreadable: Gauge,
    failing_since: Gauge,
}

/// Counts one parked waiter for as long as it lives.
#[must_use]
pub struct Parked(Metrics);

impl Drop for Parked {
    fn drop(&mut self) {
        self.0.0.parked.dec();
    }
}

/// Counts one open connection for as long as it lives.
#[must_use]
pub struct Connected(Metrics);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.0.connections.dec();
    }
}

fn fast_seconds() -> Histogram {
    // 0.25 ms to about 8 s.
    Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Figures that all stand at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("fuse");
        let mut inner = Inner {
            registry: Registry::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(fast_seconds),
            connections: Gauge::default(),
            raised: Family::default(),
            decided: Family::default(),
            expired: Counter::default(),
            expired_late: Histogram::new([0.01, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0]),
            cancelled: Counter::default(),
            held: Counter::default(),
            denied: Counter::default(),
            notified: Counter::default(),
            may_have_run: Counter::default(),
            exec_seconds: Histogram::new(exponential_buckets(0.001, 2.5, 15)),
            exec_failures: Counter::default(),
            create_seconds: Histogram::new(exponential_buckets(0.02, 2.5, 12)),
            parked: Gauge::default(),
            pending: Family::default(),
            overdue: Gauge::default(),
            commit_seconds: fast_seconds(),
            database_errors: Counter::default(),
            environments: Family::default(),
            chain_broken: Gauge::default(),
            unreadable: Gauge::default(),
            failing_since: Gauge::default(),
        };
        inner.register(&mut registry);
        inner.registry = registry;
        let metrics = Self(Arc::new(inner));
        metrics.zero();
        metrics
    }

    /// Every series exists from the start, so that a rate or an alert never waits for a first event.
    fn zero(&self) {
        for kind in Kind::ALL {
            let _ = self
                .0
                .raised
                .get_or_create_owned(&[("kind", kind.as_str())]);
            let _ = self
                .0
                .pending
                .get_or_create_owned(&[("kind", kind.as_str())]);
        }
        for outcome in Outcome::ALL {
            let label = [("outcome", outcome.as_str())];
            let _ = self.0.decided.get_or_create_owned(&label);
        }
    }

    /// The page for `/metrics`.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = String::with_capacity(16 * 1024);
        // Writing into a String cannot fail.
        let _ = text::encode(&mut page, &self.0.registry);
        page
    }

    /// One answered call. `timed` is false for calls whose length the caller chooses: long polls, execs and streams.
    pub fn request(
        &self,
        method: &'static str,
        route: &'static str,
        action: &'static str,
        status: &'static str,
        timed: Option<Duration>,
    ) {
        let call = [
            ("method", method),
            ("route", route),
            ("action", action),
            ("status", status),
        ];
        self.0.requests.get_or_create(&call).inc();
        if let Some(took) = timed {
            let timed = [("method", method), ("route", route), ("action", action)];
            let histogram = self.0.request_seconds.get_or_create(&timed);
            histogram.observe(took.as_secs_f64());
        }
    }

    /// A connection was accepted.
    pub fn connected(&self) -> Connected {
        self.0.connections.inc();
        Connected(self.clone())
    }

    /// An intervention was raised.
    pub fn raised(&self, kind: Kind) {
        self.0
            .raised
            .get_or_create(&[("kind", kind.as_str())])
            .inc();
    }

    /// An intervention was decided, by whomever.
    pub fn decided(&self, outcome: Outcome) {
        let label = [("outcome", outcome.as_str())];
        self.0.decided.get_or_create(&label).inc();
    }

    /// An intervention expired, so long after its deadline.
    pub fn expired(&self, late: Duration) {
        self.0.expired.inc();
        self.0.expired_late.observe(late.as_secs_f64());
    }

    /// So many interventions ended with their environment.
    pub fn cancelled(&self, count: u64) {
        self.0.cancelled.inc_by(count);
    }

    /// An action was held for a person.
    pub fn held(&self) {
        self.0.held.inc();
    }

    /// A gate or an allowlist refused an action.
    pub fn denied(&self) {
        self.0.denied.inc();
    }

    /// A gate recorded an action and let it through.
    pub fn notified(&self) {
        self.0.notified.inc();
    }

    /// A held action was settled as one that may or may not have run.
    pub fn may_have_run(&self) {
        self.0.may_have_run.inc();
    }

    /// A command ended in its environment, whatever its exit code.
    pub fn exec_ran(&self, took: Duration) {
        self.0.exec_seconds.observe(took.as_secs_f64());
    }

    /// An environment was made and runs.
    pub fn created(&self, took: Duration) {
        self.0.create_seconds.observe(took.as_secs_f64());
    }

    /// A command could not be run, or its guest went away.
    pub fn exec_failed(&self) {
        self.0.exec_failures.inc();
    }

    /// A waiter parks. It is counted until the guard is dropped.
    pub fn park(&self) -> Parked {
        self.0.parked.inc();
        Parked(self.clone())
    }

    /// So many interventions of a kind are pending now, over the whole database.
    pub fn set_pending(&self, kind: Kind, count: u64) {
        let label = [("kind", kind.as_str())];
        self.0.pending.get_or_create(&label).set(signed(count));
    }

    /// So many pending interventions are past their deadline now.
    pub fn set_overdue(&self, count: u64) {
        self.0.overdue.set(signed(count));
    }

    /// A transition is on record; it took this long from the hand-over to the ledger.
    pub fn committed(&self, took: Duration) {
        self.0.commit_seconds.observe(took.as_secs_f64());
    }

    /// The database failed or did not answer.
    pub fn database_error(&self) {
        self.0.database_errors.inc();
    }

    /// So many environments are in a state now.
    pub fn set_environments(&self, state: EnvState, count: u64) {
        let label = [("state", state.as_str())];
        self.0.environments.get_or_create(&label).set(signed(count));
    }

    /// Whether the audit chain was found broken.
    pub fn set_chain_broken(&self, broken: bool) {
        self.0.chain_broken.set(i64::from(broken));
    }

    /// Since when commits fail; none where they go through.
    pub fn set_failing(&self, since: Option<Timestamp>) {
        let seconds = since.map_or(0, |since| since.as_micros() / 1_000_000);
        self.0.failing_since.set(seconds);
    }

    /// So many stored values were found that cannot be read.
    pub fn set_unreadable(&self, count: u64) {
        self.0.unreadable.set(signed(count));
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Inner {
    fn register(&self, to: &mut Registry) {
        let Self {
            registry: _,
            requests,
            request_seconds,
            connections,
            raised,
            decided,
            expired,
            expired_late,
            cancelled,
            held,
            denied,
            notified,
            may_have_run,
            exec_seconds,
            exec_failures,
            create_seconds,
            parked,
            pending,
            overdue,
            commit_seconds,
            database_errors,
            environments,
            chain_broken,
            unreadable,
            failing_since,
        } = self;
        to.register("http_requests", "Answered calls", requests.clone());
        to.register(
            "commits_failing_since_seconds",
            "Unix time since which every commit has failed; 0 while they go through",
            failing_since.clone(),
        );
        to.register(
            "unreadable_records",
            "Stored values that this process found altered or damaged, each counted once",
            unreadable.clone(),
        );
        to.register(
            "http_request_seconds",
            "Time to answer, without long polls, execs and streams",
            request_seconds.clone(),
        );
        to.register("http_connections", "Open connections", connections.clone());
        to.register(
            "interventions_raised",
            "Interventions raised",
            raised.clone(),
        );
        to.register(
            "interventions_decided",
            "Interventions decided",
            decided.clone(),
        );
        to.register(
            "interventions_expired",
            "Interventions that nobody decided in time",
            expired.clone(),
        );
        to.register(
            "intervention_expiry_lateness_seconds",
            "Time between a deadline and its expiry",
            expired_late.clone(),
        );
        to.register(
            "interventions_cancelled",
            "Interventions that ended with their environment",
            cancelled.clone(),
        );
        to.register(
            "interventions_pending",
            "Interventions that wait for a person",
            pending.clone(),
        );
        to.register(
            "interventions_overdue",
            "Pending interventions past their deadline; above zero for a minute means a stuck sweep",
            overdue.clone(),
        );
        to.register("actions_held", "Actions held for a person", held.clone());
        to.register(
            "actions_denied",
            "Actions refused by a gate or an allowlist",
            denied.clone(),
        );
        to.register(
            "actions_notified",
            "Actions recorded by a notify gate",
            notified.clone(),
        );
        to.register(
            "actions_may_have_run",
            "Held actions settled as may or may not have run",
            may_have_run.clone(),
        );
        to.register("exec_seconds", "Run time of commands", exec_seconds.clone());
        to.register(
            "exec_failures",
            "Commands that could not be run",
            exec_failures.clone(),
        );
        to.register(
            "environment_create_seconds",
            "Time from a create request to the environment that runs",
            create_seconds.clone(),
        );
        to.register("waiters_parked", "Long polls that wait", parked.clone());
        to.register(
            "ledger_commit_seconds",
            "Time until a state change is on record",
            commit_seconds.clone(),
        );
        to.register(
            "database_errors",
            "Failures of the database",
            database_errors.clone(),
        );
        to.register(
            "environments",
            "Environments by state",
            environments.clone(),
        );
        to.register(
            "audit_chain_broken",
            "1 once the audit log was found changed",
            chain_broken.clone(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: HTTP-15
    #[test]
    fn the_page_tells_every_figure_in_the_format_of_prometheus() {
        let metrics = Metrics::new();
        metrics.raised(Kind::Ask);
        metrics.set_pending(Kind::Exec, 3);
        metrics.committed(Duration::from_millis(2));
        metrics.set_chain_broken(true);
        metrics.request(
            "GET",
            "/v1/environments",
            "",
            "200",
            Some(Duration::from_millis(1)),
        );
        let page = metrics.page();
        for line in [
            "fuse_interventions_raised_total{kind=\"ask\"} 1",
            "fuse_interventions_raised_total{kind=\"review\"} 0",
            "fuse_interventions_pending{kind=\"exec\"} 3",
            "fuse_ledger_commit_seconds_count 1",
            "fuse_audit_chain_broken 1",
            "fuse_http_requests_total{method=\"GET\",route=\"/v1/environments\",action=\"\",status=\"200\"} 1",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} is not in\n{page}");
        }
        assert!(page.ends_with("# EOF\n"));
    }

    #[test]
    fn a_waiter_is_counted_while_its_guard_lives() {
        let metrics = Metrics::new();
        let guard = metrics.park();
        assert!(metrics.page().contains("fuse_waiters_parked 1"));
        drop(guard);
        assert!(metrics.page().contains("fuse_waiters_parked 0"));
    }
}
