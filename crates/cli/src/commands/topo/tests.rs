//! The texts of `heist topo` on imaginary machines.

use heist_testkit::machine::{Root, two_nodes};

use super::*;

trait Read {
    /// Reads an imaginary machine. `available` is what the standard library would report on it.
    fn topology(&self, available: Option<usize>) -> Topology;
}

impl Read for Root {
    fn topology(&self, available: Option<usize>) -> Topology {
        let mut topology = Topology::from_root(self.path());
        topology.available_parallelism = available;
        topology
    }
}

fn overview(root: &Root, available: usize) -> Overview {
    Overview {
        topology: root.topology(Some(available)),
        requested: None,
        workers: Ok(available),
        membarrier: Some(true),
    }
}

#[test]
fn two_nodes_with_siblings() {
    let overview = overview(&two_nodes(), 8);
    assert_eq!(
        overview.line(),
        "4 cores of an Imaginary EPYC 9, 2 NUMA nodes, no cgroup limit; 8 workers"
    );
    let text = show::text(&overview, style::plain());
    for line in [
        "8 online: 0-7",
        "2 packages with 4 cores, with SMT",
        "4 x 32 KiB   one per core",
        "2 x 16 MiB   0-1,4-5 | 2-3,6-7",
        "distances from node 1    32  10",
        "├─ node 0: processors 0-1,4-5, 64 GiB",
        "│  └─ package 0, L3 16 MiB",
        "│     ├─ core 0: processors 0,4, L1d 32 KiB",
        "      └─ core 1: processors 3,7, L1d 32 KiB",
        "no limit",
        "8 processors: all that are online",
        "8, one per available processor",
        "chosen at random; halves of joins on the own node first, if pinned",
        "used for workers pinned by `Builder::pin`; memory is not placed",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn many_cores_share_a_line() {
    let mut root = Root::new().file("sys/devices/system/cpu/online", "0-63\n");
    for cpu in 0..64 {
        let at = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        root = root
            .file(&format!("{at}/physical_package_id"), "0")
            .file(&format!("{at}/core_cpus_list"), &cpu.to_string());
    }
    let text = show::text(&overview(&root, 64), style::plain());
    assert!(text.contains("64 cores of 1 processor each"), "{text}");
}

#[test]
fn an_affinity_mask_is_shown() {
    let root = two_nodes().file("proc/self/status", "Cpus_allowed_list:\t0,4\n");
    let line = overview(&root, 2).line();
    assert!(line.starts_with("1 of 4 cores (affinity) of an Imag"), "{line}");
}

#[test]
fn one_sibling_of_every_core_is_half_of_the_processors() {
    let root = two_nodes().file("proc/self/status", "Cpus_allowed_list:\t0-3\n");
    let line = overview(&root, 4).line();
    assert!(line.starts_with("4 of 8 processors (affinity) of"), "{line}");
}

#[test]
fn a_cgroup_limit_is_shown() {
    let root = two_nodes()
        .file("proc/self/cgroup", "0::/outer/inner\n")
        .file("sys/fs/cgroup/outer/cpu.max", "150000 100000\n")
        .file("sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n");
    let overview = overview(&root, 1);
    let line = overview.line();
    assert!(line.contains("a cgroup limit of 1.5 processors; 1 worker"), "{line}");
    let text = show::text(&overview, style::plain());
    assert!(text.contains("1 processor: limited by the cgroup"), "{text}");
    assert!(text.contains("at most 1.5 processors, set by group /outer (version 2)"), "{text}");
}

#[test]
fn missing_facts_are_shown_as_unknown() {
    let overview = Overview {
        topology: Root::new().topology(None),
        requested: Some("x".to_owned()),
        workers: Err("not a number".to_owned()),
        membarrier: None,
    };
    assert_eq!(
        overview.line(),
        "an unknown number of processors, NUMA nodes unknown, cgroup limits unknown; no workers"
    );
    let text = show::text(&overview, style::plain());
    assert_eq!(text.matches("unknown").count(), 8, "{text}");
    assert!(text.contains("not a number"), "{text}");
}

#[test]
fn processors_of_no_known_node_count_as_a_node() {
    let no_nodes = two_nodes().file("sys/devices/system/node/online", "?\n");
    let text = show::text(&overview(&no_nodes, 8), style::plain());
    assert!(text.contains("unknown: all processors count as one node"), "{text}");
    let one_node = two_nodes().file("sys/devices/system/node/node1/cpulist", "?\n");
    let text = show::text(&overview(&one_node, 8), style::plain());
    assert!(text.contains("of no known node, which count as one more: 2-3,6-7"), "{text}");
    let more_in_mask = two_nodes().file("proc/self/status", "Cpus_allowed_list:\t0-127\n");
    let text = show::text(&overview(&more_in_mask, 8), style::plain());
    assert!(!text.contains("of no known node"), "{text}");
}

#[test]
fn this_machine_has_a_summary() {
    let overview = detect();
    assert!(overview.line().contains("worker"), "{}", overview.line());
    assert!(show::text(&overview, style::plain()).contains("available"));
}

#[test]
fn json_keeps_its_field_names() {
    let root = two_nodes().file("sys/fs/cgroup/cpu.max", "200000 100000\n");
    let parsed = |overview| serde_json::from_str::<serde_json::Value>(&json::json(&overview));
    let json = parsed(overview(&root, 8)).unwrap();
    assert_eq!(json["online"].as_array().map(Vec::len), Some(8));
    assert_eq!(json["granted"], 8);
    assert_eq!(json["bound_by"], "online");
    assert_eq!(json["workers"], 8);
    assert_eq!(json["quotas"][0]["processors"], 2.0);
    assert_eq!(json["packages"][1]["cores"][0]["cpus"][1], 6);
    assert_eq!(json["caches"][0]["name"], "L1d");
    assert_eq!(json["nodes"][1]["distances"][0], 32);
    assert_eq!(json["fence"], true);
    let refused = Overview { workers: Err("no".to_owned()), ..overview(&root, 2) };
    let json = parsed(refused).unwrap();
    assert_eq!((&json["workers"], &json["bound_by"]), (&"no".into(), &"quota".into()));
}
