//! Random transitions on the store and on a model of a few lines, which have to agree after each step.

use crate::bed::Bed;
use crate::build::{approve, ask, at, destroy, environment, insert, raise, verified_log};
use fuse_api::environment::EnvState;
use fuse_api::intervention::{Kind, State};
use fuse_domain::intervention::{InstanceId, Record, RunState, end, run};
use fuse_domain::transition::{Committed, Transition};
use fuse_store::{EnvironmentRow, InterventionFilter, Store};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

both!(the_store_agrees_with_a_model);

/// A step. Numbers choose among what there is.
#[derive(Debug, Clone)]
enum Step {
    Create,
    Raise { env: usize, held: bool },
    Approve { which: usize, stale: bool },
    Expire { which: usize },
    Start { which: usize },
    Finish { which: usize },
    Destroy { env: usize },
    Together(Vec<Step>),
}

fn step() -> impl Strategy<Value = Step> {
    let one = prop_oneof![
        2 => Just(Step::Create),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(env, held)| Step::Raise { env, held }),
        5 => (any::<usize>(), prop::bool::weighted(0.2))
            .prop_map(|(which, stale)| Step::Approve { which, stale }),
        2 => any::<usize>().prop_map(|which| Step::Expire { which }),
        3 => any::<usize>().prop_map(|which| Step::Start { which }),
        3 => any::<usize>().prop_map(|which| Step::Finish { which }),
        1 => any::<usize>().prop_map(|env| Step::Destroy { env }),
    ];
    prop_oneof![
        3 => one.clone(),
        1 => prop::collection::vec(one, 2..8).prop_map(Step::Together),
    ]
}

#[derive(Default)]
struct Model {
    environments: Vec<(EnvironmentRow, bool)>,
    records: Vec<Record>,
    entries: usize,
}

impl Model {
    /// One of the last environments, so that most of what is asked for finds one that lives.
    fn recent(&self, n: usize) -> usize {
        let count = self.environments.len();
        count - 1 - n % count.min(3)
    }

    /// What a step asks of the store, and whether the model says that it is taken. The model is changed along.
    fn apply(&mut self, step: &Step) -> Option<(Transition, bool)> {
        let pick = |n: usize, len: usize| (len > 0).then(|| n % len);
        match step {
            Step::Create | Step::Together(_) => None,
            Step::Raise { env, held } => {
                let (env, alive) = &self.environments[self.recent(*env)];
                let mut record = ask(env, "?");
                if *held {
                    record.view.kind = Kind::Exec;
                }
                if *alive {
                    self.records.push(record.clone());
                    self.entries += 1;
                }
                Some((raise(&record), *alive))
            }
            Step::Approve { which, stale } => {
                let n = pick(*which, self.records.len())?;
                let record = &mut self.records[n];
                let mut transition = approve(record, "p");
                if *stale && let Some(resolve) = &mut transition.resolve {
                    resolve.expected_version -= 1;
                }
                let taken = !*stale && record.view.state == State::Pending;
                if taken {
                    end_by(record, &transition);
                    self.entries += 1;
                }
                Some((transition, taken))
            }
            Step::Expire { which } => {
                let n = pick(*which, self.records.len())?;
                let record = &mut self.records[n];
                let transition = end::expire(&(&*record).into(), at(600));
                let taken = record.view.state == State::Pending;
                if taken {
                    end_by(record, &transition);
                    self.entries += 1;
                }
                Some((transition, taken))
            }
            Step::Start { which } => {
                let n = pick(*which, self.records.len())?;
                let record = &mut self.records[n];
                if record.run != RunState::Ready {
                    return None;
                }
                let transition = run::start(record, InstanceId("me".into()));
                record.run = RunState::Started(InstanceId("me".into()));
                record.version += 1;
                Some((transition, true))
            }
            Step::Finish { which } => {
                let n = pick(*which, self.records.len())?;
                let record = &mut self.records[n];
                let transition = run::finish(record, run::failed("x"));
                let taken = record.view.state != State::Pending;
                if taken {
                    record.run = RunState::Done;
                    record.view.result = Some(run::failed("x"));
                    record.version += 1;
                }
                Some((transition, taken))
            }
            Step::Destroy { env } => {
                let n = self.recent(*env);
                let (env, alive) = &mut self.environments[n];
                let transition = destroy(env);
                let taken = std::mem::replace(alive, false);
                let uid = env.uid.clone();
                for record in self.records.iter_mut().filter(|r| r.env_uid == uid) {
                    if record.view.state == State::Pending
                        && let Some(close) = &transition.close
                    {
                        record.view.state = State::Cancelled;
                        record.view.resolved_at = Some(close.at);
                        record.view.decision = Some(close.cancel_with.clone());
                        record.version += 1;
                        self.entries += 1;
                    }
                }
                Some((transition, taken))
            }
        }
    }
}

fn end_by(record: &mut Record, transition: &Transition) {
    let resolve = transition.resolve.as_ref().expect("it resolves");
    record.view.state = resolve.state;
    record.view.resolved_at = Some(resolve.decision.decided_at);
    record.view.decision = Some(resolve.decision.clone());
    record.run = resolve.run.clone();
    record.version += 1;
}

async fn perform(store: &Store, model: &mut Model, step: &Step) {
    match step {
        Step::Create => {
            let env = environment(&format!("e{}", model.environments.len()));
            insert(store, &env).await;
            model.environments.push((env, true));
        }
        Step::Together(steps) => {
            let planned: Vec<_> = steps.iter().filter_map(|step| model.apply(step)).collect();
            let (batch, expected): (Vec<_>, Vec<_>) = planned.into_iter().unzip();
            let answers = store.commit_all(batch).await;
            for (answer, expected) in answers.into_iter().zip(expected) {
                check(&answer.expect("commits"), expected);
            }
        }
        single => {
            if let Some((transition, expected)) = model.apply(single) {
                check(&store.commit(transition).await.expect("commits"), expected);
            }
        }
    }
}

fn check(committed: &Committed, expected: bool) {
    assert_eq!(
        matches!(committed, Committed::Done(_)),
        expected,
        "{committed:?}"
    );
}

async fn agree(store: &Store, model: &Model) {
    let filter = InterventionFilter::default();
    let mut stored = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = store
            .list_interventions(&filter, 200, cursor.as_deref())
            .await
            .expect("lists");
        stored.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let by_id = |a: &Record, b: &Record| a.view.id.cmp(&b.view.id);
    stored.sort_by(by_id);
    let mut expected = model.records.clone();
    expected.sort_by(by_id);
    assert_eq!(stored, expected);
    assert_eq!(verified_log(store).await.len(), model.entries);
    for (env, alive) in &model.environments {
        let row = store.get_environment_by_uid(&env.uid).await.expect("reads");
        let state = if *alive {
            EnvState::Running
        } else {
            EnvState::Destroyed
        };
        assert_eq!(row.map(|row| row.state), Some(state));
    }
}

// check: INV-3
// check: INV-4
// check: INV-19
// check: AUDIT-1
async fn the_store_agrees_with_a_model(bed: &Bed) {
    let store = bed.open().await;
    let mut runner = TestRunner::new(Config::default());
    let mut model = Model::default();
    perform(&store, &mut model, &Step::Create).await;
    let mut story = Vec::new();
    // A story by chance may be one of dead environments for long: it goes on until enough was raised.
    while story.len() < 120 || (model.records.len() <= 10 && story.len() < 2000) {
        let step = step().new_tree(&mut runner).expect("a step").current();
        story.push(step.clone());
        // A failed assertion shows the story that led to it.
        let shown = Story(&story);
        perform(&store, &mut model, &step).await;
        agree(&store, &model).await;
        std::mem::forget(shown);
    }
    assert!(model.records.len() > 10);
}

struct Story<'a>(&'a [Step]);

impl Drop for Story<'_> {
    fn drop(&mut self) {
        eprintln!("the steps: {:#?}", self.0);
    }
}
