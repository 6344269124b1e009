//! The contract with pools of heist: their threads may call every function.

use std::sync::mpsc;

use heist_testkit::test_path;

use crate::common::{alone, panic_of, with_pool};

#[test]
fn everything_can_be_called() {
    alone(test_path!("everything_can_be_called"), &[("RAYON_NUM_THREADS", "2")], || {
        let pool = heist::Pool::builder().workers(2).build().expect("a pool");
        pool.install(|| {
            assert_eq!(rayon_core::current_thread_index(), None);
            assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
            assert_eq!(panic_of(|| rayon_core::join(|| panic!("a"), || panic!("b"))), "a");
            assert_eq!(rayon_core::broadcast(|context| context.index()), [0, 1]);
            let mut index = None;
            rayon_core::scope(|scope| scope.spawn(|_| index = rayon_core::current_thread_index()));
            assert!(index.is_some());
            rayon_core::in_place_scope_fifo(|scope| scope.spawn_fifo(|_| index = None));
            assert!(index.is_none());
            let (tell, told) = mpsc::channel();
            rayon_core::spawn(move || tell.send(rayon_core::current_num_threads()).unwrap());
            assert_eq!(told.recv(), Ok(2));
            assert_eq!(with_pool(1, |other| other.install(|| 3)), 3);
        });
        pool.stop();
    });
}

/// Pools of heist, used from a thread of a pool of this crate.
#[test]
fn from_a_pool_of_ours() {
    let theirs = heist::Pool::builder().workers(1).build().expect("a pool");
    // Two threads: the one that waits for a pool of heist runs nothing else.
    with_pool(2, |ours| {
        let result = ours.install(|| theirs.install(|| heist::join(|| 1, || ours.install(|| 2))));
        assert_eq!(result, (1, 2));
        assert_eq!(ours.install(|| heist::join(|| 1, || 2)), (1, 2));
    });
    theirs.stop();
}
