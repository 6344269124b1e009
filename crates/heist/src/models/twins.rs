//! Negative twins: each ordering weakened and each fence taken away, one at a time, must be noticed.

use super::explore::{self, Model};
use super::{idle, stats, task};
use crate::order::{FENCES, ORDERINGS};

/// The test below that a child process runs.
const CHILD: &str = "models::twins::child";

fn all() -> impl Iterator<Item = &'static Model> {
    idle::MODELS.iter().chain(task::MODELS).chain(stats::MODELS)
}

/// Not a test of its own: what a child process runs.
#[test]
#[ignore = "explores one twin for the tests below"]
fn child() {
    let sites: Vec<_> = ORDERINGS.iter().chain(FENCES).copied().collect();
    explore::explore_as_child(all(), &sites);
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

#[test]
fn every_weakened_ordering_is_noticed() {
    each_is_noticed(&task::MODELS.iter().chain(stats::MODELS).collect::<Vec<_>>(), ORDERINGS);
}

#[test]
fn every_missing_fence_is_noticed() {
    each_is_noticed(&idle::MODELS.iter().collect::<Vec<_>>(), FENCES);
}

#[test]
fn without_a_weakened_site_nothing_fails() {
    for model in all() {
        assert!(!explore::fails(CHILD, model, ""), "{} fails by itself", model.name);
    }
}
