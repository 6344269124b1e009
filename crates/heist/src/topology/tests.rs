//! What is read from the files of imaginary machines.

use heist_testkit::machine::{Root, machine, two_nodes};

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

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

#[test]
fn two_nodes_with_siblings() {
    let topology = two_nodes().topology(Some(8));
    assert_eq!(topology.model.as_deref(), Some("Imaginary EPYC 9"));
    assert_eq!(
        (topology.online.clone(), topology.allowed.clone()),
        (Some(cpus("0-7")), Some(cpus("0-7")))
    );
    let cores: Vec<_> = topology
        .packages
        .iter()
        .flat_map(|package| {
            package.cores.iter().map(|core| (package.id, core.id, core.cpus.to_string()))
        })
        .collect();
    let expected = [(0, 0, "0,4"), (0, 1, "1,5"), (1, 0, "2,6"), (1, 1, "3,7")];
    assert_eq!(cores, expected.map(|(package, core, cpus)| (package, core, cpus.to_owned())));
    let caches: Vec<_> = topology
        .caches
        .iter()
        .map(|cache| (cache.name(), cache.kibibytes, cache.cpus.to_string()))
        .collect();
    let expected = [
        ("L1d", 32, "0,4"),
        ("L1d", 32, "1,5"),
        ("L1d", 32, "2,6"),
        ("L1d", 32, "3,7"),
        ("L3", 16_384, "0-1,4-5"),
        ("L3", 16_384, "2-3,6-7"),
    ];
    assert_eq!(caches, expected.map(|(name, size, cpus)| (name.to_owned(), size, cpus.to_owned())));
    assert_eq!(topology.nodes.len(), 2);
    assert_eq!(topology.nodes[1].cpus, cpus("2-3,6-7"));
    assert_eq!(topology.nodes[1].memory_kibibytes, Some(67_108_864));
    assert_eq!(topology.nodes[1].distances, [32, 10]);
    assert_eq!(topology.quotas, Some(vec![]));
    assert_eq!(topology.limited_by(), ParallelismLimit::Online);
}

#[test]
fn an_affinity_mask_limits() {
    let root = two_nodes().file("proc/self/status", "Cpus_allowed_list:\t0,4\n");
    assert_eq!(root.topology(Some(2)).limited_by(), ParallelismLimit::Affinity);
}

#[test]
fn the_tightest_of_nested_groups_limits() {
    let topology = two_nodes()
        .file("proc/self/cgroup", "0::/outer/inner\n")
        .file("sys/fs/cgroup/cpu.max", "max 100000\n")
        .file("sys/fs/cgroup/outer/cpu.max", "150000 100000\n")
        .file("sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n")
        .topology(Some(1));
    let quotas: Vec<_> = topology
        .quotas
        .iter()
        .flatten()
        .map(|quota| (quota.group.as_str(), quota.version, quota.processors))
        .collect();
    assert_eq!(quotas, [("/outer/inner", 2, 4.0), ("/outer", 2, 1.5)]);
    assert_eq!(topology.tightest_quota().unwrap().processors, 1.5);
    assert_eq!(topology.limited_by(), ParallelismLimit::Cgroup);
}

/// The mount point shows the container's own group, while the name of the group is the host's.
#[test]
fn version_1_groups_in_a_container() {
    let topology = two_nodes()
        .file("proc/self/cgroup", "5:memory:/box\n4:cpu,cpuacct:/box/job\n0::/\n")
        .file(
            "proc/self/mountinfo",
            "32 31 0:29 /box /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
        )
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n")
        .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
        .file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n")
        .file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n")
        .topology(Some(2));
    let expected = CgroupQuota { group: "/".to_owned(), version: 1, processors: 2.0 };
    assert_eq!(topology.quotas, Some(vec![expected]));
    assert_eq!(topology.limited_by(), ParallelismLimit::Cgroup);
}

#[test]
fn a_quota_above_the_number_of_processors_does_not_limit() {
    let root = two_nodes().file("sys/fs/cgroup/cpu.max", "1600000 100000\n");
    assert_eq!(root.topology(Some(8)).limited_by(), ParallelismLimit::Online);
}

#[test]
fn missing_files_leave_everything_unknown() {
    let topology = Root::new().topology(None);
    assert_eq!(topology, Topology::default());
    assert_eq!(topology.limited_by(), ParallelismLimit::Unknown);
}

#[test]
fn malformed_files_leave_their_values_unknown() {
    let topology = two_nodes()
        .file("sys/devices/system/cpu/online", "many\n")
        .file("sys/devices/system/node/online", "-\n")
        .file("proc/self/cgroup", "what\n0::\n::::\n")
        .file("sys/fs/cgroup/cpu.max", "100000 0\n")
        .topology(Some(8));
    assert_eq!(topology.online, None);
    assert!(
        topology.nodes.is_empty() && topology.packages.is_empty() && topology.caches.is_empty()
    );
    assert_eq!(topology.quotas, Some(vec![]));
    assert_eq!(topology.limited_by(), ParallelismLimit::Unknown);
}

/// Older kernels have no list of siblings: each processor is a core.
#[test]
fn processors_without_siblings_are_cores() {
    let root = Root::new()
        .file("sys/devices/system/cpu/online", "0-1\n")
        .file("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0")
        .file("sys/devices/system/cpu/cpu1/topology/physical_package_id", "0");
    let packages = root.topology(None).packages;
    let cores: Vec<_> = packages[0].cores.iter().map(|core| (core.id, core.cpus.clone())).collect();
    assert_eq!(cores, [(-1, cpus("0")), (-1, cpus("1"))]);
}

/// Returns a machine whose nodes have these distances, and two processors each.
fn distances(rows: &[&str]) -> Root {
    let layout: Vec<_> =
        (0..rows.len()).map(|node| format!("{} {}", 2 * node, 2 * node + 1)).collect();
    let write = |root: Root, (node, row): (usize, &&str)| {
        root.file(&format!("sys/devices/system/node/node{node}/distance"), &format!("{row}\n"))
    };
    rows.iter().enumerate().fold(machine(&layout.join(" | ")), write)
}

#[test]
fn one_two_four_and_eight_nodes_with_their_distances() {
    for count in [1, 2, 4, 8] {
        let row = |node: usize| {
            let distance = |to: usize| if to == node { 10 } else { 12 + 10 * node.abs_diff(to) };
            (0..count).map(distance).collect::<Vec<_>>()
        };
        let text = |node| row(node).iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        let rows: Vec<String> = (0..count).map(text).collect();
        let rows: Vec<&str> = rows.iter().map(|row| &**row).collect();
        let nodes = distances(&rows).topology(None).nodes;
        assert_eq!(nodes.len(), count);
        for (number, node) in nodes.iter().enumerate() {
            assert_eq!((node.id, node.cpus.len()), (number, 2));
            let expected: Vec<u64> =
                row(number).into_iter().map(|distance| distance as u64).collect();
            assert_eq!(node.distances, expected);
        }
    }
}

/// The numbers of nodes and processors have holes, a node has only memory, and others cannot be read.
#[test]
fn nodes_with_holes_and_unreadable_ones() {
    let at = |node: usize, name: &str| format!("sys/devices/system/node/node{node}/{name}");
    let root = Root::new()
        .file("sys/devices/system/node/online", "0,3-5,17\n")
        .file(&at(0, "distance"), "10 20 30 far 50\n")
        .file(&at(3, "distance"), "20 10\n")
        .file(&at(0, "cpulist"), "2,9\n")
        .file(&at(3, "cpulist"), "\n")
        .file(&at(4, "cpulist"), "all of them\n")
        .file(&at(17, "cpulist"), "64-65\n")
        .file(&at(17, "distance"), "50 40 30 20 10\n");
    let topology = root.topology(None);
    let nodes: Vec<_> =
        topology.nodes.iter().map(|node| (node.id, node.cpus.to_string())).collect();
    assert_eq!(nodes, [(0, "2,9".to_owned()), (3, String::new()), (17, "64-65".to_owned())]);
    let distances: Vec<_> = topology.nodes.iter().map(|node| &*node.distances).collect();
    assert_eq!(
        distances,
        [&[][..], &[], &[50, 40, 10]],
        "malformed, too few, and those of the others"
    );
}

/// A control group's set of processors is in the mask, and so are those that went offline not.
#[test]
fn a_cgroup_cpuset_with_offline_processors_limits() {
    let root = machine("0 1 2 3 | 4 5 6 7")
        .file("sys/devices/system/cpu/online", "0-2,4-7\n")
        .file("proc/self/status", "Cpus_allowed_list:\t1-2,6\n")
        .file("proc/self/cgroup", "0::/box\n")
        .file("sys/fs/cgroup/box/cpuset.cpus.effective", "1-2,6\n");
    let topology = root.topology(Some(3));
    assert_eq!((topology.online, topology.allowed), (Some(cpus("0-2,4-7")), Some(cpus("1-2,6"))));
    assert_eq!(root.topology(Some(3)).limited_by(), ParallelismLimit::Affinity);
}

#[test]
fn this_machine_reports_its_parallelism() {
    assert!(Topology::detect().available_parallelism.is_some_and(|processors| processors > 0));
}
