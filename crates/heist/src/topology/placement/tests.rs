//! The order of the processors of imaginary machines.

use heist_testkit::machine::{Root, machine, two_nodes};

use super::*;

/// Asserts both orders of the processors that the system lets the process use: those of the mask that are online.
fn assert_orders(root: &Root, compact: &[usize], spread: &[usize]) {
    let topology = Topology::from_root(root.path());
    let mask = topology.allowed.clone().expect("a mask");
    let is_online = |cpu: &usize| topology.online.as_ref().is_none_or(|cpus| cpus.contains(*cpu));
    let allowed = mask.as_slice().iter().copied().filter(is_online).collect();
    assert_eq!(topology.compact(&allowed), compact, "compact");
    assert_eq!(topology.spread(&allowed), spread, "spread");
}

fn allowing(root: Root, cpus: &str) -> Root {
    root.file("proc/self/status", &format!("Cpus_allowed_list:\t{cpus}\n"))
}

#[test]
fn one_node() {
    assert_orders(&machine("0 1 2 3"), &[0, 1, 2, 3], &[0, 1, 2, 3]);
    assert_orders(&machine("0"), &[0], &[0]);
}

/// Compact fills the physical cores of a cache first, and spread those of the machine.
#[test]
fn two_nodes_with_siblings() {
    let (compact, spread) = ([0, 1, 4, 5, 2, 3, 6, 7], [0, 2, 1, 3, 4, 6, 5, 7]);
    assert_orders(&two_nodes(), &compact, &spread);
    assert_orders(&machine("0,4 1,5 | 2,6 3,7"), &compact, &spread);
}

/// The numbers of the processors are dealt out over the nodes, as some machines do.
#[test]
fn four_nodes() {
    let root = machine("0 4 | 1 5 | 2 6 | 3 7");
    assert_orders(&root, &[0, 4, 1, 5, 2, 6, 3, 7], &[0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn eight_nodes() {
    let root = machine("0 1 | 2 3 | 4 5 | 6 7 | 8 9 | 10 11 | 12 13 | 14 15");
    let spread = [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15];
    assert_orders(&root, &(0..16).collect::<Vec<_>>(), &spread);
}

#[test]
fn caches_of_a_node_are_filled_one_by_one_or_take_turns() {
    let root = machine("0,8 1,9 / 2,10 3,11 | 4,12 5,13 / 6,14 7,15");
    let compact = [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];
    let spread = [0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15];
    assert_orders(&root, &compact, &spread);
}

/// Spread uses every physical core of the larger node before a second processor of the smaller one.
#[test]
fn uneven_nodes() {
    let root = machine("0,6 | 1,7 2,8 3,9 4,10 5,11");
    let compact = [0, 6, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11];
    let spread = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
    assert_orders(&root, &compact, &spread);
    let memory_only = machine("0 1 | - | 2 3");
    assert_orders(&memory_only, &[0, 1, 2, 3], &[0, 2, 1, 3]);
}

/// A hybrid machine: some cores have two processors, others one.
#[test]
fn uneven_cores() {
    assert_orders(&machine("0,1 2,3 4 5"), &[0, 2, 4, 5, 1, 3], &[0, 2, 4, 5, 1, 3]);
}

#[test]
fn offline_processors_and_holes() {
    let root = machine("0,4 1,5 | 2,6 3,7").file("sys/devices/system/cpu/online", "0,3,5-7\n");
    assert_orders(&root, &[0, 5, 3, 6, 7], &[0, 3, 5, 6, 7]);
    assert_orders(&machine("3 17 | 64 129"), &[3, 17, 64, 129], &[3, 64, 17, 129]);
}

/// The second processor of a core whose first one is not in the mask counts as the first one.
#[test]
fn masks() {
    let mask = |cpus| allowing(two_nodes(), cpus);
    assert_orders(&mask("1,4-7"), &[1, 4, 5, 6, 7], &[1, 6, 4, 7, 5]);
    assert_orders(&mask("6-7"), &[6, 7], &[6, 7]);
    assert_orders(&mask("2"), &[2], &[2]);
}

/// Processors of no known node are one node.
#[test]
fn unreadable_files_leave_one_node() {
    let nothing = allowing(Root::new(), "0-3,9");
    assert_orders(&nothing, &[0, 1, 2, 3, 9], &[0, 1, 2, 3, 9]);
    let no_nodes = machine("0 1 / 4 5 | 2 3").file("sys/devices/system/node/online", "?\n");
    // The caches are known, and their order is that of their processors.
    assert_orders(&no_nodes, &[0, 1, 2, 3, 4, 5], &[0, 2, 4, 1, 3, 5]);
    let one_node = machine("0 1 | 2 3 | 4 5").file("sys/devices/system/node/node1/cpulist", "x");
    assert_orders(&one_node, &[0, 1, 4, 5, 2, 3], &[0, 4, 2, 1, 5, 3]);
}
