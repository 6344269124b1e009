//! Negative twins: each ordering weakened, and each fence removed, one at a time, must make a model fail.

use super::explore::{self, Model};
use super::{cancel, fork, idle, pipeline, raid, stats, task, trace};
use crate::order::{
    ASLEEP, CHAIN, END, FENCES, FOUND, GIVE, OFFER, ORDERINGS, PUT, RAID, REST, SLEEP, STOLEN,
    SUBMIT,
};

/// Orderings of `heist-deque`: what a push publishes and a steal sees.
const JOB_DEQUE: &[&str] = &["slot_publish", "slot_claim"];

/// The test below that a child process runs.
const CHILD: &str = "models::twins::child";

fn all() -> impl Iterator<Item = &'static Model> {
    let pool = idle::MODELS.iter().chain(task::MODELS).chain(stats::MODELS);
    let pool = pool.chain(trace::MODELS).chain(fork::MODELS).chain(raid::MODELS);
    pool.chain(cancel::MODELS).chain(pipeline::MODELS)
}

/// Runs the models with one ordering weakened. It is not a test of its own: a child process runs it.
#[test]
#[ignore = "explores one twin for the tests below"]
fn child() {
    let sites: Vec<_> = ORDERINGS.iter().chain(FENCES).chain(JOB_DEQUE).copied().collect();
    explore::explore_as_child(all().chain(fork::WRONG).chain(pipeline::WRONG), &sites);
}

fn each_is_noticed(models: &[&Model], sites: &[&str]) {
    let mut missed = Vec::new();
    for &site in sites {
        match models.iter().find(|model| explore::fails(CHILD, model, site)) {
            Some(model) => println!("{site:<16} weakened: {} fails", model.name),
            None => missed.push(site),
        }
    }
    assert!(missed.is_empty(), "no model notices when these are weakened: {missed:?}");
}

/// The models of each part of the crate, and the orderings that they must notice: together all of them.
fn parts(parts: &[(&[Model], &[&'static str])], all: &[&str]) {
    for (models, sites) in parts {
        each_is_noticed(&models.iter().collect::<Vec<_>>(), sites);
    }
    let covered: Vec<_> = parts.iter().flat_map(|(_, sites)| *sites).collect();
    let missed: Vec<_> = all.iter().filter(|site| !covered.contains(site)).collect();
    assert!(missed.is_empty(), "no part is said to notice when these are weakened: {missed:?}");
}

#[test]
fn every_weakened_ordering_is_noticed() {
    let of_task = [
        "start_alone",
        "claim",
        "postpone",
        "queue_leaves",
        "handle_leaves",
        "outcome_read",
        "listener_publish",
        "batch_done",
    ];
    let of_trace = ["event_write", "event_read", "events_publish", "events_read"];
    let of_each: [(&[Model], &[&str]); 6] = [
        (task::MODELS, &of_task),
        (stats::MODELS, &["count_publish", "count_read"]),
        (fork::MODELS, &["scope_done"]),
        (cancel::MODELS, &["cancel_publish", "cancel_read"]),
        (trace::MODELS, &of_trace),
        (raid::MODELS, &["newest_publish", "newest_read"]),
    ];
    parts(&of_each, ORDERINGS);
}

#[test]
fn every_missing_fence_is_noticed() {
    let of_each: [(&[Model], &[&str]); 4] = [
        (idle::MODELS, &[SUBMIT, SLEEP, FOUND, END]),
        (fork::MODELS, &[OFFER, STOLEN]),
        (raid::MODELS, &[CHAIN, RAID]),
        (pipeline::MODELS, &[GIVE, REST, PUT, ASLEEP]),
    ];
    parts(&of_each, FENCES);
}

/// How a published job gets from its owner to a thief depends on the deque between them.
#[test]
fn a_job_is_handed_over_by_the_deque() {
    each_is_noticed(&fork::MODELS.iter().collect::<Vec<_>>(), JOB_DEQUE);
}

/// A demand that is raised while its owner answers another would be lost.
#[test]
fn demand_relies_on_the_fences() {
    for name in ["fork_demand_against_sleep", "fork_take_back_against_sleep"] {
        let model = fork::MODELS.iter().find(|model| model.name == name);
        each_is_noticed(&[model.expect("listed")], &[SUBMIT, SLEEP]);
    }
}

/// The models of forks with their steps in the wrong order must fail.
#[test]
fn demand_out_of_order_is_noticed() {
    for model in fork::WRONG {
        assert!(explore::fails(CHILD, model, ""), "{} holds", model.name);
    }
}

/// A result is in the outbox before the consumer is notified.
#[test]
fn results_announced_too_early_are_noticed() {
    for model in pipeline::WRONG {
        assert!(explore::fails(CHILD, model, ""), "{} holds", model.name);
    }
}

/// A raid keeps a worker from sleeping while another one has a job that it wants and has not seen the demand.
#[test]
fn sleep_relies_on_the_fences_of_a_raid() {
    let model = |name| raid::MODELS.iter().find(|model| model.name == name).expect("listed");
    each_is_noticed(&[model("raid_against_sleep")], &[CHAIN, RAID]);
    each_is_noticed(&[model("raid_against_searcher")], &[SLEEP, FOUND]);
}

/// No other worker looks into a worker's broadcast queue.
#[test]
fn broadcasts_rely_on_the_fences() {
    let model = idle::MODELS.iter().find(|model| model.name == "idle_broadcast_against_park");
    each_is_noticed(&[model.expect("listed")], &[SUBMIT, SLEEP]);
}

#[test]
fn without_a_weakened_site_nothing_fails() {
    for model in all() {
        assert!(!explore::fails(CHILD, model, ""), "{} fails by itself", model.name);
    }
}
