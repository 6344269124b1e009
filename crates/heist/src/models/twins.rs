//! Negative twins: each ordering weakened, and each fence removed, one at a time, must make a model fail.

use super::explore::{self, DEADLOCK, Model, RACE};
use super::{
    cancel, credit, fork, guest, handoff, helping, idle, injectors, latest, near, pipeline,
    private, raid, resize, retire, stats, task, trace, waiting,
};
use crate::order::{
    ASLEEP, CHAIN, END, FENCES, FOUND, GIVE, LISTEN, OFFER, ORDERINGS, PUT, RAID, REST, RETURN,
    SLEEP, STOLEN, SUBMIT, VISIT,
};

/// Orderings of `heist-deque`: what a push publishes and a steal sees.
const JOB_DEQUE: &[&str] = &["slot_publish", "slot_claim"];

/// The test below that a child process runs.
const CHILD: &str = "models::twins::child";

fn all() -> impl Iterator<Item = &'static Model> {
    let pool = idle::MODELS.iter().chain(task::MODELS).chain(stats::MODELS);
    let pool = pool.chain(trace::MODELS).chain(fork::MODELS).chain(raid::MODELS);
    let pool = pool.chain(waiting::MODELS).chain(handoff::MODELS).chain(helping::MODELS);
    let pool = pool.chain(cancel::MODELS).chain(pipeline::MODELS).chain(credit::MODELS);
    pool.chain(injectors::MODELS)
        .chain(private::MODELS)
        .chain(guest::MODELS)
        .chain(resize::MODELS)
        .chain(retire::MODELS)
        .chain(near::MODELS)
        .chain(latest::MODELS)
}

/// Runs the models with one ordering weakened. It is not a test of its own: a child process runs it.
#[test]
#[ignore = "explores one twin for the tests below"]
fn child() {
    let sites: Vec<_> = ORDERINGS.iter().chain(FENCES).chain(JOB_DEQUE).copied().collect();
    let wrong = fork::WRONG
        .iter()
        .chain(task::WRONG)
        .chain(idle::WRONG)
        .chain(pipeline::WRONG)
        .chain([&pipeline::WRONG_TURN, &pipeline::WRONG_LOOK, &pipeline::WRONG_LINE])
        .chain(waiting::WRONG)
        .chain(handoff::WRONG)
        .chain(helping::WRONG)
        .chain(credit::WRONG)
        .chain(injectors::WRONG)
        .chain(guest::WRONG)
        .chain(resize::WRONG)
        .chain(retire::WRONG)
        .chain(near::WRONG)
        .chain(latest::WRONG);
    explore::explore_as_child(all().chain(wrong), &sites);
}

/// A site, and what is reported when it is weakened.
type Site = (&'static str, &'static str);

fn each_is_noticed(models: &[&Model], sites: &[Site]) {
    let mut missed = Vec::new();
    for &(site, message) in sites {
        match models.iter().find(|model| explore::fails(CHILD, model, site, message)) {
            Some(model) => println!("{site:<16} weakened: {} fails: {message}", model.name),
            None => missed.push(site),
        }
    }
    assert!(missed.is_empty(), "no model notices when these are weakened: {missed:?}");
}

/// The models of each part of the crate, and the orderings that they must notice: together all of them.
fn parts(parts: &[(&[Model], &[Site])], all: &[&str]) {
    for (models, sites) in parts {
        each_is_noticed(&models.iter().collect::<Vec<_>>(), sites);
    }
    let covered: Vec<_> =
        parts.iter().flat_map(|(_, sites)| *sites).map(|(site, _)| site).collect();
    let missed: Vec<_> = all.iter().filter(|site| !covered.contains(site)).collect();
    assert!(missed.is_empty(), "no part is said to notice when these are weakened: {missed:?}");
}

#[test]
fn every_weakened_ordering_is_noticed() {
    let of_task = [
        ("start_alone", RACE),
        ("queue_leaves", RACE),
        ("handle_leaves", RACE),
        ("outcome_read", RACE),
        ("listener_publish", RACE),
        ("batch_done", RACE),
        ("slot_return", RACE),
    ];
    let mixed = "that are lost";
    let of_trace = ["event_write", "event_read", "events_publish", "events_read"];
    let of_trace = of_trace.map(|site| (site, mixed));
    let ended_unsubmitted = "tasks_submitted: 0, tasks_completed: 1";
    let of_stats = ["count_publish", "count_read"].map(|site| (site, ended_unsubmitted));
    let old_grant = "the grant follows the pull before it";
    let of_turns = [
        ("turn_grant", old_grant),
        ("turn_take", old_grant),
        ("turn_wait", "a worker that pulls seems to wait"),
    ];
    let of_each: [(&[Model], &[Site]); 10] = [
        (task::MODELS, &of_task),
        (waiting::MODELS, &[("listener_read", RACE), ("listener_publish", RACE)]),
        (stats::MODELS, &of_stats),
        (fork::MODELS, &[("scope_done", RACE)]),
        (&[model(credit::MODELS, "credit_steal")], &[("scope_done", RACE)]),
        (cancel::MODELS, &[("cancel_publish", RACE), ("cancel_read", RACE)]),
        (trace::MODELS, &of_trace),
        (raid::MODELS, &[("newest_publish", RACE), ("newest_read", RACE)]),
        (private::MODELS, &[("newest_publish", RACE), ("newest_read", RACE)]),
        (pipeline::MODELS, &of_turns),
    ];
    parts(&of_each, ORDERINGS);
}

/// Without the fences of a raid, a worker sleeps while another one has a job that it wants and has not seen the demand.
/// Other models of raids fail as well, but there a thief uses a job that is gone, and what is reported of that depends
/// on what is in its place.
#[test]
fn every_missing_fence_is_noticed() {
    let (unserved, unseen) = ("nobody can have the other one", "no worker will see the batch");
    let twice = "a task was taken twice";
    let of_idle =
        [(SUBMIT, DEADLOCK), (SLEEP, DEADLOCK), (FOUND, DEADLOCK), (END, "a task was left behind")];
    let of_pipeline = [(GIVE, unseen), (REST, unseen), (PUT, DEADLOCK), (ASLEEP, DEADLOCK)];
    let of_guest = [(VISIT, "nobody can have the second half"), (RETURN, DEADLOCK)];
    let of_each: [(&[Model], &[Site]); 8] = [
        (guest::MODELS, &of_guest),
        (waiting::MODELS, &[(LISTEN, DEADLOCK), (SUBMIT, DEADLOCK)]),
        (idle::MODELS, &of_idle),
        (fork::MODELS, &[(OFFER, unserved), (STOLEN, unserved)]),
        (&[model(raid::MODELS, "raid_against_sleep")], &[(CHAIN, DEADLOCK), (RAID, DEADLOCK)]),
        (&[model(private::MODELS, "private_pop_against_thief")], &[(CHAIN, twice), (RAID, twice)]),
        (
            &[model(private::MODELS, "private_against_sleep")],
            &[(CHAIN, DEADLOCK), (RAID, DEADLOCK)],
        ),
        (pipeline::MODELS, &of_pipeline),
    ];
    parts(&of_each, FENCES);
}

fn model(models: &[Model], name: &str) -> Model {
    *models.iter().find(|model| model.name == name).expect("listed")
}

/// A token of a section is announced as a batch is.
#[test]
fn tokens_rely_on_the_fences() {
    let model = model(pipeline::MODELS, "pipeline_ready_against_rest");
    let unseen = "no worker will see the batch";
    each_is_noticed(&[&model], &[(GIVE, unseen), (REST, unseen)]);
}

/// How a published job of an engine gets from its owner to a thief depends on the deque between them. In a pool it is a
/// lane, which has a lock.
#[test]
fn a_job_of_an_engine_is_handed_over_by_the_deque() {
    let sites: Vec<_> = JOB_DEQUE.iter().map(|&site| (site, RACE)).collect();
    each_is_noticed(&[&model(fork::MODELS, "fork_publish_in_engine")], &sites);
}

/// A demand that is raised while its owner answers another would be lost.
#[test]
fn demand_relies_on_the_fences() {
    for name in
        ["fork_demand_against_sleep", "fork_settle_against_sleep", "fork_take_back_against_sleep"]
    {
        each_is_noticed(&[&model(fork::MODELS, name)], &[(SUBMIT, DEADLOCK), (SLEEP, DEADLOCK)]);
    }
}

/// The models of forks with their steps in the wrong order must fail.
#[test]
fn demand_out_of_order_is_noticed() {
    for model in fork::WRONG {
        assert!(explore::fails(CHILD, model, "", DEADLOCK), "{} holds", model.name);
    }
}

/// Workers of other clusters rely on the fences as those of the same cluster do.
#[test]
fn clusters_rely_on_the_fences() {
    for name in ["idle_last_searcher_of_cluster", "idle_broadcast_to_clusters"] {
        each_is_noticed(&[&model(idle::MODELS, name)], &[(SUBMIT, DEADLOCK), (SLEEP, DEADLOCK)]);
    }
    let searcher = model(idle::MODELS, "idle_last_searcher_of_cluster");
    each_is_noticed(&[&searcher], &[(FOUND, DEADLOCK)]);
}

/// A worker that was woken for a task and retires passes the task on, and a stop makes retired workers go on.
#[test]
fn a_worker_that_retires_in_silence_or_for_ever_is_noticed() {
    for model in resize::WRONG.iter().chain(retire::WRONG) {
        assert!(explore::fails(CHILD, model, "", DEADLOCK), "{} holds", model.name);
    }
}

/// A worker that falls asleep while a pool of several clusters is made smaller relies on the fences of a sleep and of a push. In a
/// pool of one cluster, the lock of the sleepers orders the two.
#[test]
fn a_worker_that_retires_relies_on_the_fences() {
    let model = model(retire::MODELS, "retire_against_sleep_in_clusters");
    each_is_noticed(&[&model], &[(SUBMIT, DEADLOCK), (SLEEP, DEADLOCK)]);
}

/// A near task is not stranded behind a long task: it is announced, and is seen by the last look and at the end of a search.
#[test]
fn stranded_near_tasks_are_noticed() {
    for model in near::WRONG {
        assert!(explore::fails(CHILD, model, "", DEADLOCK), "{} holds", model.name);
    }
}

/// A worker that is called ends its search, even if it waits no longer; and a pusher does not rely on a lock that is taken.
#[test]
fn forgotten_searches_are_noticed() {
    for model in idle::WRONG {
        assert!(explore::fails(CHILD, model, "", DEADLOCK), "{} holds", model.name);
    }
}

/// A guest that leaves takes the last look for a worker that was not woken because of it, and looks for the end of the pool.
#[test]
fn guests_that_leave_without_a_look_are_noticed() {
    for (model, message) in guest::WRONG.iter().zip([DEADLOCK, "the pool ends once"]) {
        assert!(explore::fails(CHILD, model, "", message), "{} holds", model.name);
    }
    let model = model(guest::MODELS, "guest_leaves_against_submit");
    each_is_noticed(&[&model], &[(SUBMIT, DEADLOCK)]);
    let model = self::model(guest::MODELS, "guest_against_sleep");
    each_is_noticed(&[&model], &[(SLEEP, "nobody can have the second half")]);
}

/// A result is in the outbox before the consumer is notified.
#[test]
fn results_announced_too_early_are_noticed() {
    for model in pipeline::WRONG {
        assert!(explore::fails(CHILD, model, "", DEADLOCK), "{} holds", model.name);
    }
}

/// A worker that has been granted a pull must use it, even if it has given up waiting.
#[test]
fn a_turn_that_is_ignored_is_noticed() {
    let model = &pipeline::WRONG_TURN;
    assert!(
        explore::fails(CHILD, model, "", "no thread can pull any more"),
        "{} holds",
        model.name
    );
}

/// A sender must get into the line in the critical section in which it has found no room.
#[test]
fn a_line_without_a_look_is_noticed() {
    let model = &pipeline::WRONG_LINE;
    assert!(explore::fails(CHILD, model, "", DEADLOCK), "{} holds", model.name);
}

/// Batches that are not announced while a worker waits for its turn are for that worker, and for nobody if it does not look.
#[test]
fn a_turn_without_a_look_is_noticed() {
    let unseen = "no worker will see the batch";
    let model = &pipeline::WRONG_LOOK;
    assert!(explore::fails(CHILD, model, "", unseen), "{} holds", model.name);
    let model = self::model(pipeline::MODELS, "pipeline_give_against_giving_up");
    each_is_noticed(&[&model], &[(GIVE, unseen), (REST, unseen)]);
}

/// The real wait of a thread without a core relies on the fences and on the reminder.
#[test]
fn helping_relies_on_the_fences() {
    let model = model(helping::MODELS, "helping_without_core");
    each_is_noticed(&[&model], &[(LISTEN, DEADLOCK), (SUBMIT, DEADLOCK), ("listener_read", RACE)]);
}

/// A thread returns its credit when it finds no part, and before another task. Every part is counted. And a thread that has
/// returned its credit does not use the latch.
#[test]
fn credit_that_is_kept_or_missing_is_noticed() {
    let reports = [DEADLOCK, DEADLOCK, RACE, RACE];
    for (model, message) in credit::WRONG.iter().zip(reports) {
        assert!(explore::fails(CHILD, model, "", message), "{} holds", model.name);
    }
}

/// A worker looks into the injectors of all clusters, and into the queues of priorities, before it sleeps, after its fence.
#[test]
fn a_last_look_that_leaves_out_an_injector_is_noticed() {
    for name in ["injectors_push_against_sleep", "ranked_push_against_sleep"] {
        let model = model(injectors::MODELS, name);
        each_is_noticed(&[&model], &[(SUBMIT, DEADLOCK), (SLEEP, DEADLOCK)]);
    }
    for model in injectors::WRONG {
        assert!(explore::fails(CHILD, model, "", DEADLOCK), "{} holds", model.name);
    }
}

/// A worker that comes to a cancelled task refuses it.
#[test]
fn a_cancelled_task_that_runs_is_noticed() {
    for model in task::WRONG {
        assert!(explore::fails(CHILD, model, "", task::RUNS_CANCELLED), "{} holds", model.name);
    }
}

/// The handle of a poll is left for the thread that waits when the poll was counted, and only if there is no newer one.
#[test]
fn handles_of_polls_that_come_early_or_late_are_noticed() {
    for (model, message) in latest::WRONG.iter().zip([latest::UNCOUNTED, latest::HIDDEN]) {
        assert!(explore::fails(CHILD, model, "", message), "{} holds", model.name);
    }
}

/// A part stays in its lane until a thread takes it out in order to run it.
#[test]
fn parts_that_change_lanes_are_noticed() {
    for model in helping::WRONG {
        assert!(explore::fails(CHILD, model, "", DEADLOCK), "{} holds", model.name);
    }
}

/// The start of a batch is counted, so that the batch is there when the start reminds the thread that waits.
#[test]
fn a_start_that_is_not_counted_is_noticed() {
    for model in waiting::WRONG {
        assert!(explore::fails(CHILD, model, "", RACE), "{} holds", model.name);
    }
}

/// A thread looks for a core after it has left the list of those that want one, or under the same lock. And a grant is
/// used or given back.
#[test]
fn lost_cores_and_threads_are_noticed() {
    for (model, message) in
        [(&handoff::LOOK_EARLY, handoff::LOST), (&handoff::FORGOTTEN_GRANT, DEADLOCK)]
    {
        assert!(explore::fails(CHILD, model, "", message), "{} holds", model.name);
    }
}

/// A worker that goes to sleep raises the demand before it looks who searches.
#[test]
fn demand_relies_on_the_fences_of_a_search() {
    let unserved = "nobody can have the second half";
    let searcher = model(raid::MODELS, "raid_against_searcher");
    each_is_noticed(&[&searcher], &[(SLEEP, unserved), (FOUND, unserved)]);
}

/// No other worker looks into a worker's broadcast queue.
#[test]
fn broadcasts_rely_on_the_fences() {
    let model = model(idle::MODELS, "idle_broadcast_against_park");
    each_is_noticed(&[&model], &[(SUBMIT, DEADLOCK), (SLEEP, DEADLOCK)]);
}

#[test]
fn without_a_weakened_site_nothing_fails() {
    for model in all() {
        explore::must_begin_in_child(CHILD, model);
    }
}

/// `docs/ORDERINGS.md` has a row for each ordering and fence, and the models that it names are there.
#[test]
fn every_ordering_and_fence_has_a_row() {
    let text = include_str!("../../../../docs/ORDERINGS.md");
    for name in ORDERINGS.iter().chain(FENCES) {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{name}`")));
        let row = row.unwrap_or_else(|| panic!("there is no row for {name}"));
        let shown_by = row.rsplit(" | ").next().expect("the last column");
        let named: Vec<_> = shown_by.split('`').skip(1).step_by(2).collect();
        let known = |name: &&str| all().any(|model| model.name == *name);
        assert!(!named.is_empty() && named.iter().all(known), "{name} is shown by {shown_by}");
    }
}
