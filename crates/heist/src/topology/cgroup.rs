//! The CPU limits of the control groups that contain this process, for version 1 and version 2 hierarchies.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The CPU limit of one control group.
///
/// ```
/// let topology = heist::topology::Topology::detect();
/// for quota in topology.quotas.iter().flatten() {
///     println!("{} (cgroup version {}): {} processors", quota.group, quota.version, quota.processors);
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CgroupQuota {
    /// The path of the group, relative to the root of the hierarchy that this process sees.
    pub group: String,
    /// The version of the control group hierarchy: 1 or 2.
    pub version: u8,
    /// The processor time that the group may use per unit of time: 1.5 is one and a half processors.
    pub processors: f64,
}

/// A mounted control group hierarchy.
struct Hierarchy {
    version: u8,
    mount: PathBuf,
    /// The group that is visible at the mount point.
    base: String,
}

/// Returns all limits from the group of this process up to the root, innermost first. Fails if the group of this process is not
/// known, or if a limit that is there cannot be read.
pub(super) fn quotas(root: &Path) -> io::Result<Vec<CgroupQuota>> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup"))?;
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
            quotas.extend(hierarchy.quotas(group)?);
        }
    }
    Ok(quotas)
}

/// Finds the hierarchy of a version in the list of mounts, or else at its conventional mount point.
fn mounted(root: &Path, mounts: &str, version: u8) -> Option<Hierarchy> {
    let listed = mounts.lines().find_map(|line| {
        // 32 31 0:29 /base /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
        let (mount, filesystem) = line.split_once(" - ")?;
        let mount: Vec<_> = mount.split(' ').collect();
        let filesystem: Vec<_> = filesystem.split(' ').collect();
        let matches = match version {
            2 => *filesystem.first()? == "cgroup2",
            _ => {
                *filesystem.first()? == "cgroup"
                    && filesystem.get(2)?.split(',').any(|option| option == "cpu")
            }
        };
        matches.then_some(())?;
        let path = root.join(mount.get(4)?.trim_start_matches('/'));
        Some(Hierarchy { version, mount: path, base: (*mount.get(3)?).to_owned() })
    });
    listed.or_else(|| {
        let conventional: &[&str] =
            if version == 2 { &["", "unified"] } else { &["cpu", "cpu,cpuacct"] };
        let mount = conventional
            .iter()
            .map(|name| root.join("sys/fs/cgroup").join(name))
            .find(|mount| mount.is_dir())?;
        Some(Hierarchy { version, mount, base: "/".to_owned() })
    })
}

impl Hierarchy {
    /// Returns the limits of a group and of all groups that contain it.
    fn quotas(&self, group: &str) -> io::Result<Vec<CgroupQuota>> {
        // In a container, the mount point may show the container's own group while `group` is the host's name
        // for it.
        let inner = Path::new(group).strip_prefix(&self.base).unwrap_or(Path::new(""));
        inner
            .ancestors()
            .filter_map(|group| {
                let quota = |processors| CgroupQuota {
                    group: format!("/{}", group.display()),
                    version: self.version,
                    processors,
                };
                self.limit(&self.mount.join(group)).map(|limit| limit.map(quota)).transpose()
            })
            .collect()
    }

    /// Returns the limit of a group, or `None` if it has none.
    fn limit(&self, group: &Path) -> io::Result<Option<f64>> {
        let text = if self.version == 2 {
            read(group, "cpu.max")?
        } else {
            let (quota, period) =
                (read(group, "cpu.cfs_quota_us")?, read(group, "cpu.cfs_period_us")?);
            quota.zip(period).map(|(quota, period)| format!("{} {}", quota.trim(), period.trim()))
        };
        Ok(text.and_then(|text| {
            let (quota, period) = text.trim().split_once(' ')?;
            // Version 2 writes `max` where there is no limit, and version 1 writes -1.
            let number = |text: &str| text.parse().ok().filter(|&number: &f64| number > 0.0);
            Some(number(quota)? / number(period)?)
        }))
    }
}

/// Returns the text of a file of a group, or `None` if the group has no such file.
fn read(group: &Path, name: &str) -> io::Result<Option<String>> {
    match fs::read_to_string(group.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
