//! Imaginary machines: directories with the files of `/proc` and `/sys` that describe a machine.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// A directory that stands for `/`. It is removed on drop.
#[derive(Debug)]
pub struct Root(TempDir);

impl Root {
    /// Creates an empty directory.
    ///
    /// # Panics
    ///
    /// Panics if the directory cannot be created.
    #[must_use]
    pub fn new() -> Self {
        Self(crate::temp_dir())
    }

    /// Writes a file.
    ///
    /// # Panics
    ///
    /// Panics if the file cannot be written.
    #[must_use]
    pub fn file(self, path: &str, text: &str) -> Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a path within the root")).expect("a directory");
        fs::write(path, text).expect("a file");
        self
    }

    /// Returns the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Default for Root {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns a machine of this layout, in which the process may use every processor. `|` separates NUMA nodes, `/` separates
/// caches of a node, and a space separates physical cores. A core is a list of processors in the kernel's notation:
/// `0,4 1,5 / 2,6 | 3,7` has two nodes, of which the first has two caches. `-` is a node without processors.
///
/// # Panics
///
/// Panics if a file cannot be written.
#[must_use]
pub fn machine(layout: &str) -> Root {
    let list = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(",");
    let all = list(&layout.replace(['|', '/', '-'], " "));
    let nodes: Vec<_> = layout.split('|').collect();
    let mut root = Root::new()
        .file("proc/self/status", &format!("Name:\theist\nCpus_allowed_list:\t{all}\n"))
        .file("sys/devices/system/cpu/online", &format!("{all}\n"))
        .file("sys/devices/system/node/online", &format!("0-{}\n", nodes.len() - 1));
    for (number, node) in nodes.into_iter().enumerate() {
        let cpus = list(&node.replace(['/', '-'], " "));
        root = root.file(&format!("sys/devices/system/node/node{number}/cpulist"), &cpus);
        for cache in node.split('/').filter(|cache| cache.trim() != "-") {
            for core in cache.split_whitespace() {
                for cpu in core.split(',') {
                    root = with_cpu_of(root, cpu, number, core, &list(cache));
                }
            }
        }
    }
    root
}

fn with_cpu_of(root: Root, cpu: &str, package: usize, core: &str, cache: &str) -> Root {
    let at = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/{name}");
    root.file(&at("topology/physical_package_id"), &package.to_string())
        .file(&at("topology/core_cpus_list"), core)
        .file(&at("cache/index0/level"), "1")
        .file(&at("cache/index0/type"), "Data")
        .file(&at("cache/index0/size"), "32K")
        .file(&at("cache/index0/shared_cpu_list"), core)
        .file(&at("cache/index1/level"), "3")
        .file(&at("cache/index1/type"), "Unified")
        .file(&at("cache/index1/size"), "16M")
        .file(&at("cache/index1/shared_cpu_list"), cache)
}

/// Returns a machine of two NUMA nodes with one package each. A package has two cores of two processors:
/// 0, 4 | 1, 5 in the first and 2, 6 | 3, 7 in the second.
#[must_use]
pub fn two_nodes() -> Root {
    let mut root = Root::new()
        .file("proc/cpuinfo", "processor\t: 0\nmodel name\t: Imaginary  EPYC 9\n")
        .file("proc/self/status", "Name:\theist\nCpus_allowed_list:\t0-7\n")
        .file("proc/self/cgroup", "0::/\n")
        .file("sys/devices/system/cpu/online", "0-7\n")
        .file("sys/devices/system/node/online", "0-1\n");
    for (node, cpus, distances) in [(0, "0-1,4-5", "10 32\n"), (1, "2-3,6-7", "32 10\n")] {
        let at = |name: &str| format!("sys/devices/system/node/node{node}/{name}");
        root = root
            .file(&at("cpulist"), cpus)
            .file(&at("meminfo"), &format!("Node {node} MemTotal:   67108864 kB\n"))
            .file(&at("distance"), distances);
    }
    (0..8).fold(root, with_cpu)
}

fn with_cpu(mut root: Root, cpu: usize) -> Root {
    let (core, package) = (cpu % 4, cpu % 4 / 2);
    let node = if package == 0 { "0-1,4-5" } else { "2-3,6-7" };
    let at = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/{name}");
    let siblings = format!("{core},{}\n", core + 4);
    root = root
        .file(&at("topology/physical_package_id"), &format!("{package}\n"))
        .file(&at("topology/core_id"), &format!("{}\n", core % 2))
        .file(&at("topology/thread_siblings_list"), &siblings);
    let caches = [
        ("1", "Data", "32K", &*siblings),
        ("1", "Instruction", "32K", &*siblings),
        ("3", "Unified", "16M", node),
    ];
    for (index, (level, kind, size, shared)) in caches.into_iter().enumerate() {
        let at = |name: &str| at(&format!("cache/index{index}/{name}"));
        root = root
            .file(&at("level"), level)
            .file(&at("type"), kind)
            .file(&at("size"), size)
            .file(&at("shared_cpu_list"), shared);
    }
    root
}
