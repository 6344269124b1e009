//! Machines made of files.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::style;

/// A directory that stands for `/`, until it is dropped.
struct Root(PathBuf);

impl Root {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("heist-topo-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn put(self, path: &str, text: &str) -> Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn topology(&self, granted: usize) -> Topology {
        Topology::read(
            &self.0,
            Told { granted: Some(granted), wished: None, workers: Ok(granted), fence: Some(true) },
        )
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Two nodes of a package each, with two cores of two siblings each: 0, 4 | 1, 5 and 2, 6 | 3, 7.
fn two_by_two() -> Root {
    let mut root = Root::new()
        .put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Imaginary  EPYC 9\n")
        .put("proc/self/status", "Name:\theist\nCpus_allowed_list:\t0-7\n")
        .put("proc/self/cgroup", "0::/\n")
        .put("sys/devices/system/cpu/online", "0-7\n")
        .put("sys/devices/system/node/online", "0-1\n");
    for cpu in 0..8 {
        let package = cpu % 4 / 2;
        let (core, node) = (cpu % 4, if package == 0 { "0-1,4-5" } else { "2-3,6-7" });
        let at = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/{name}");
        let siblings = format!("{core},{}\n", core + 4);
        root = root
            .put(&at("topology/physical_package_id"), &format!("{package}\n"))
            .put(&at("topology/core_id"), &format!("{}\n", core % 2))
            .put(&at("topology/thread_siblings_list"), &siblings);
        let caches = [
            ("1", "Data", "32K", &*siblings),
            ("1", "Instruction", "32K", &*siblings),
            ("3", "Unified", "16M", node),
        ];
        for (index, (level, kind, size, shared)) in caches.into_iter().enumerate() {
            let at = |name: &str| at(&format!("cache/index{index}/{name}"));
            root = root
                .put(&at("level"), level)
                .put(&at("type"), kind)
                .put(&at("size"), size)
                .put(&at("shared_cpu_list"), shared);
        }
        root = root
            .put(&format!("sys/devices/system/node/node{package}/cpulist"), node)
            .put(
                &format!("sys/devices/system/node/node{package}/meminfo"),
                &format!("Node {package} MemTotal:   67108864 kB\n"),
            )
            .put(
                &format!("sys/devices/system/node/node{package}/distance"),
                if package == 0 { "10 32\n" } else { "32 10\n" },
            );
    }
    root
}

#[test]
fn two_nodes_with_siblings() {
    let topology = two_by_two().topology(8);
    assert_eq!(
        topology.line(),
        "4 cores of an Imaginary EPYC 9, 2 NUMA nodes, no cgroup limit; 8 workers"
    );
    assert_eq!(topology.bound_by, Bound::Online);
    let text = show::text(&topology, style::plain());
    for line in [
        "8 online: 0-7",
        "2 packages with 4 cores, with siblings (SMT)",
        "4 x 32 KiB   one for each core",
        "2 x 16 MiB   0-1,4-5 | 2-3,6-7",
        "node 1   is at  32  10 from the others",
        "├─ node 0: processors 0-1,4-5, 64 GiB",
        "│  └─ package 0, L3 16 MiB",
        "│     ├─ core 0: processors 0,4, L1d 32 KiB",
        "      └─ core 1: processors 3,7, L1d 32 KiB",
        "no limit",
        "8 processors: there are no more",
        "8, one for each processor that is granted",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn many_cores_share_a_line() {
    let mut root = Root::new().put("sys/devices/system/cpu/online", "0-63\n");
    for cpu in 0..64 {
        let at = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        root = root
            .put(&format!("{at}/physical_package_id"), "0")
            .put(&format!("{at}/core_cpus_list"), &cpu.to_string());
    }
    let text = show::text(&root.topology(64), style::plain());
    assert!(text.contains("64 cores of 1 processor each"), "{text}");
}

#[test]
fn an_affinity_mask_binds() {
    let topology = two_by_two().put("proc/self/status", "Cpus_allowed_list:\t0,4\n").topology(2);
    assert_eq!(topology.bound_by, Bound::Affinity);
    assert!(
        topology.line().starts_with("1 of 4 cores (affinity) of an Imag"),
        "{}",
        topology.line()
    );
}

#[test]
fn one_sibling_of_every_core_is_half_of_the_processors() {
    let topology = two_by_two().put("proc/self/status", "Cpus_allowed_list:\t0-3\n").topology(4);
    assert!(topology.line().starts_with("4 of 8 processors (affinity) of"), "{}", topology.line());
}

#[test]
fn the_tightest_of_nested_groups_binds() {
    let topology = two_by_two()
        .put("proc/self/cgroup", "0::/outer/inner\n")
        .put("sys/fs/cgroup/cpu.max", "max 100000\n")
        .put("sys/fs/cgroup/outer/cpu.max", "150000 100000\n")
        .put("sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n")
        .topology(1);
    let quotas = topology.quotas.as_ref().unwrap();
    assert_eq!(
        quotas.iter().map(|quota| (quota.group.as_str(), quota.processors)).collect::<Vec<_>>(),
        [("/outer/inner", 4.0), ("/outer", 1.5)]
    );
    assert_eq!(topology.bound_by, Bound::Quota);
    assert!(
        topology.line().contains("a cgroup limit of 1.5 processors; 1 worker"),
        "{}",
        topology.line()
    );
    let text = show::text(&topology, style::plain());
    assert!(text.contains("1 processor: because of the cgroup limit"), "{text}");
    assert!(text.contains("time of 1.5 processors, by /outer (version 2)"), "{text}");
}

/// The mount point is the container's own group, the name is the host's.
#[test]
fn groups_of_version_1_in_a_container() {
    let topology = two_by_two()
        .put("proc/self/cgroup", "5:memory:/box\n4:cpu,cpuacct:/box/job\n0::/\n")
        .put(
            "proc/self/mountinfo",
            "32 31 0:29 /box /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
        )
        .put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n")
        .put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
        .put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n")
        .put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n")
        .topology(2);
    assert_eq!(
        topology.quotas,
        Some(vec![Quota { group: "/".to_owned(), version: 1, processors: 2.0 }])
    );
    assert_eq!(topology.bound_by, Bound::Quota);
}

#[test]
fn a_limit_that_is_wider_than_the_machine_does_not_bind() {
    let topology = two_by_two().put("sys/fs/cgroup/cpu.max", "1600000 100000\n").topology(8);
    assert_eq!(topology.bound_by, Bound::Online);
}

#[test]
fn where_nothing_can_be_read_it_says_so() {
    let root = Root::new();
    let told = Told {
        granted: None,
        wished: Some("x".to_owned()),
        workers: Err("not a number".to_owned()),
        fence: None,
    };
    let topology = Topology::read(&root.0, told);
    assert_eq!(
        topology.line(),
        "an unknown number of processors, NUMA nodes unknown, cgroup limits unknown; no workers"
    );
    let text = show::text(&topology, style::plain());
    assert_eq!(text.matches("unknown").count(), 8, "{text}");
    assert!(text.contains("not a number"), "{text}");
}

#[test]
fn files_full_of_nonsense_are_not_believed() {
    let topology = two_by_two()
        .put("sys/devices/system/cpu/online", "many\n")
        .put("sys/devices/system/node/online", "-\n")
        .put("proc/self/cgroup", "what\n0::\n::::\n")
        .put("sys/fs/cgroup/cpu.max", "100000 0\n")
        .topology(8);
    assert_eq!(
        (topology.online.as_ref(), topology.nodes.len(), topology.packages.len()),
        (None, 0, 0)
    );
    assert_eq!(topology.quotas, Some(vec![]));
    assert_eq!(topology.bound_by, Bound::Unknown);
}

#[test]
fn this_machine_has_a_line() {
    let topology = detect();
    assert!(topology.line().contains("worker"), "{}", topology.line());
    assert!(show::text(&topology, style::plain()).contains("granted"));
}

#[test]
fn it_can_be_read_by_programs() {
    let json = serde_json::to_value(two_by_two().topology(8)).unwrap();
    assert_eq!(json["online"].as_array().map(Vec::len), Some(8));
    assert_eq!(json["nodes"][1]["distances"][0], 32);
    assert_eq!(json["workers"], 8);
    assert_eq!(json["bound_by"], "online");
}
