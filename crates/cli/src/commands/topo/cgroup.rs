//! How much processor time the process's control groups allow it: those of version 2, those of version 1, and all that they are nested in.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A group that has a limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Quota {
    /// Its name, from the root of the hierarchy that is seen here.
    pub(crate) group: String,
    /// Of control groups: 1 or 2.
    pub(crate) version: u8,
    /// Processor time per time: 1.5 is one and a half processors.
    pub(crate) processors: f64,
}

/// Where a hierarchy is mounted, and from which of its groups on.
struct Hierarchy {
    version: u8,
    mount: PathBuf,
    /// The group that the mount point is.
    base: String,
}

/// All limits on the way from the process's group to the root, the innermost first. `None` if nothing says in which group the process is.
pub(crate) fn quotas(root: &Path) -> Option<Vec<Quota>> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
    let mut quotas = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(group)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let hierarchy = match controllers {
            "" if number == "0" => mounted(root, &mounts, 2),
            _ if controllers.split(',').any(|name| name == "cpu") => mounted(root, &mounts, 1),
            _ => continue,
        };
        if let Some(hierarchy) = hierarchy {
            quotas.extend(hierarchy.along(group));
        }
    }
    Some(quotas)
}

/// The tightest of them.
pub(crate) fn tightest(quotas: &[Quota]) -> Option<&Quota> {
    quotas.iter().min_by(|a, b| a.processors.total_cmp(&b.processors))
}

/// From the list of mounts, or else where everybody mounts it.
fn mounted(root: &Path, mounts: &str, version: u8) -> Option<Hierarchy> {
    let found = mounts.lines().find_map(|line| {
        // 32 31 0:29 /base /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
        let (own, system) = line.split_once(" - ")?;
        let own: Vec<_> = own.split(' ').collect();
        let system: Vec<_> = system.split(' ').collect();
        let right = match version {
            2 => *system.first()? == "cgroup2",
            _ => {
                *system.first()? == "cgroup"
                    && system.get(2)?.split(',').any(|option| option == "cpu")
            }
        };
        right.then_some(())?;
        let mount = root.join(own.get(4)?.trim_start_matches('/'));
        Some(Hierarchy { version, mount, base: (*own.get(3)?).to_owned() })
    });
    found.or_else(|| {
        let usual: &[&str] = if version == 2 { &["", "unified"] } else { &["cpu", "cpu,cpuacct"] };
        let mount = usual
            .iter()
            .map(|name| root.join("sys/fs/cgroup").join(name))
            .find(|mount| mount.is_dir())?;
        Some(Hierarchy { version, mount, base: "/".to_owned() })
    })
}

impl Hierarchy {
    /// The limits of a group and of those around it.
    fn along(&self, group: &str) -> Vec<Quota> {
        // In a container the mount point may be the container's own group, while the name is the host's.
        let inner = Path::new(group).strip_prefix(&self.base).unwrap_or(Path::new(""));
        inner
            .ancestors()
            .filter_map(|group| {
                let processors = self.limit(&self.mount.join(group))?;
                Some(Quota {
                    group: format!("/{}", group.display()),
                    version: self.version,
                    processors,
                })
            })
            .collect()
    }

    fn limit(&self, group: &Path) -> Option<f64> {
        let read = |name: &str| fs::read_to_string(group.join(name)).ok();
        let (quota, period) = if self.version == 2 {
            let text = read("cpu.max")?;
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        } else {
            (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?)
        };
        // `max`, or -1: no limit.
        let quota: f64 = quota.trim().parse().ok().filter(|&quota| quota > 0.0)?;
        let period: f64 = period.trim().parse().ok().filter(|&period| period > 0.0)?;
        Some(quota / period)
    }
}
