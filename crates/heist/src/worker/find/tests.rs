//! Halves of joins are taken on the own NUMA node first, and on the others after a bounded number of looks.

use super::NEAR_LOOKS;
use crate::cluster::{Clusters, NodeMap};
use crate::queues::{Queues, Stealing};
use crate::sync::Arc;
use crate::task::{JobKind, Task};
use crate::worker::config::Config;
use crate::worker::core::Core;
use crate::worker::shared::Shared;
use crate::worker::table::Place;
use crate::worker::thread::WorkerThread;

/// Returns the first worker of a pool with two workers on each of two nodes, and the places of the other workers.
fn first_of_four() -> (WorkerThread<Stealing>, [Place<Stealing>; 3]) {
    let nodes = NodeMap::new(&[(0, &[10, 21]), (1, &[21, 10])]);
    let clusters = Clusters::new(4, None, nodes, Some(&[0, 0, 1, 1]));
    let shared = Arc::new(Shared::with_clusters(Config::plain(4, 4), clusters));
    let place = shared.enter().expect("there is a place");
    let others = [(); 3].map(|()| shared.enter().expect("there is a place"));
    let thread = WorkerThread::new(Arc::clone(&shared), place);
    thread.acquire_core(Box::new(Core::new(0, shared.ledger.of_worker(0))));
    (thread, others)
}

/// Publishes a part of a loop or of a join. Returns its number.
fn publish(thread: &WorkerThread<Stealing>, owner: &Place<Stealing>, kind: JobKind) -> usize {
    // SAFETY: it borrows nothing.
    let (part, handle) = unsafe { Task::job(8, kind, || ()) };
    drop(handle);
    let id = part.id();
    thread.shared.queues.push_job(&owner.own, part, 8);
    id
}

/// Returns what the worker finds, look by look, in that many looks.
fn looks(thread: &WorkerThread<Stealing>, count: u32) -> Vec<Option<usize>> {
    let core = thread.core.borrow();
    let core = core.as_ref().expect("it has a core");
    let look = |_| thread.search_injector_first(core, true).map(|task| task.id());
    (0..count).map(look).collect()
}

#[test]
fn a_half_on_another_node_waits_for_a_bounded_number_of_looks() {
    let (thread, [_near, far, farther]) = first_of_four();
    for owner in [&far, &farther] {
        let half = publish(&thread, owner, JobKind::Half);
        let mut expected = vec![None; NEAR_LOOKS as usize];
        expected.push(Some(half));
        assert_eq!(looks(&thread, NEAR_LOOKS + 1), expected);
    }
}

#[test]
fn a_half_on_the_own_node_comes_first() {
    let (thread, [near, far, _]) = first_of_four();
    let halves = [(); 3].map(|()| publish(&thread, &far, JobKind::Half));
    let own = [(); 3].map(|()| publish(&thread, &near, JobKind::Half));
    assert_eq!(looks(&thread, 3), own.map(Some));
    // Nothing is left on the own node. What was found there has begun the count anew.
    let found: Vec<_> = looks(&thread, 3 * (NEAR_LOOKS + 1)).into_iter().flatten().collect();
    assert_eq!(found, halves);
}

#[test]
fn other_parts_are_taken_from_everywhere() {
    let (thread, [_near, far, _]) = first_of_four();
    let part = publish(&thread, &far, JobKind::Loop);
    assert_eq!(looks(&thread, 1), [Some(part)]);
}
