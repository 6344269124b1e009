//! What accesses to one line cost.

use super::*;
use crate::costs::Costs;
use crate::machine::Machine;

/// A line of a machine with two sockets of two cores, and the buffers of these cores.
struct Bench {
    ticks: Ticks,
    topology: Topology,
    line: Line,
    buffers: [StoreBuffer; 4],
}

const NEAR: Picos = 20_000;
const FAR: Picos = 130_000;

impl Bench {
    fn new() -> Self {
        let machine = Machine { cluster_transfer: 20.0, ..Machine::generic(2) };
        Self {
            ticks: Ticks::from(&Costs::default()),
            topology: Topology::new(&machine.with_sockets(2, 2)),
            line: Line::NEW,
            buffers: [StoreBuffer::default(); 4],
        }
    }

    fn access(&mut self, core: Core, now: Picos, access: Access) -> Outcome {
        self.line.access(
            access,
            &mut Context {
                ticks: &self.ticks,
                topology: &self.topology,
                core,
                now,
                buffer: &mut self.buffers[usize::from(core)],
            },
        )
    }
}

#[test]
fn a_first_touch_comes_from_memory_and_a_second_from_the_cache() {
    let mut bench = Bench::new();
    let (fresh, load) = (bench.ticks.fresh, bench.ticks.load);
    let first = bench.access(0, 0, Access::Load);
    assert_eq!(first, Outcome { end: fresh + load, is_transfer: false, queued: 0 });
    let second = bench.access(0, 100_000, Access::Load);
    assert_eq!(second, Outcome { end: 100_000 + load, is_transfer: false, queued: 0 });
}

#[test]
fn a_line_of_another_core_takes_a_transfer() {
    for (core, transfer) in [(1, NEAR), (3, FAR)] {
        let mut bench = Bench::new();
        bench.access(0, 0, Access::Update);
        let outcome = bench.access(core, 1_000_000, Access::Update);
        let end = 1_000_000 + transfer + bench.ticks.rmw;
        assert_eq!(outcome, Outcome { end, is_transfer: true, queued: 0 });
    }
}

#[test]
fn the_owner_keeps_the_line_until_the_request_arrives() {
    let mut bench = Bench::new();
    bench.access(0, 0, Access::Update);
    bench.access(1, 1_000_000, Access::Update);
    let (half, rmw) = (NEAR / 2, bench.ticks.rmw);
    let before = bench.access(0, 1_000_000 + half - 1, Access::Update);
    assert_eq!(before.end, 1_000_000 + half - 1 + rmw, "still in the cache");
    assert!(bench.access(0, 1_000_000 + half, Access::Update).is_transfer);
}

#[test]
fn requests_are_served_one_after_the_other() {
    let mut bench = Bench::new();
    bench.access(0, 0, Access::Update);
    let second = bench.access(1, 1_000_000, Access::Update);
    let third = bench.access(0, 1_000_000 + NEAR, Access::Update);
    assert!(third.queued > 0 && third.end > second.end);
}

#[test]
fn readers_share_and_a_writer_invalidates_them() {
    let mut bench = Bench::new();
    bench.access(0, 0, Access::Load);
    assert!(bench.access(1, 1_000_000, Access::Load).is_transfer);
    assert!(!bench.access(0, 2_000_000, Access::Load).is_transfer);
    assert!(bench.access(0, 3_000_000, Access::Update).is_transfer);
    assert!(bench.access(1, 4_000_000, Access::Load).is_transfer, "it was invalidated");
}

#[test]
fn a_store_goes_on_and_a_fence_of_the_same_core_waits() {
    let mut bench = Bench::new();
    bench.access(0, 0, Access::Update);
    let outcome = bench.access(1, 1_000_000, Access::Store);
    assert_eq!(outcome.end, 1_000_000 + bench.ticks.store);
    assert_eq!(bench.buffers[1].flush(1_000_000), 1_000_000 + NEAR);
}

#[test]
fn an_access_waits_for_a_prefetch_and_not_longer() {
    let mut bench = Bench::new();
    bench.access(0, 0, Access::Update);
    let Bench { ticks, topology, line, buffers } = &mut bench;
    let now = 1_000_000;
    line.prefetch(
        Access::Load,
        &mut Context { ticks, topology, core: 1, now, buffer: &mut buffers[1] },
    );
    let early = bench.access(1, now + 1_000, Access::Load);
    assert_eq!(early.end, now + NEAR + 2 * bench.ticks.load);
    let late = bench.access(1, now + 1_000_000, Access::Load);
    assert_eq!(late.end, now + 1_000_000 + bench.ticks.load);
}
