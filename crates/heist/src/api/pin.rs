//! `Pin`: the processors on which the workers of a pool run.

use crate::error::BuildError;
use crate::sync::Mask;
use crate::topology::{CpuSet, Topology};
use crate::worker::pin::Pins;

/// The processors on which the workers of a pool run; see [`Builder::pin`](crate::Builder::pin).
///
/// Each variant but the first makes a list of processors. Worker `i` runs only on processor `list[i % list.len()]`. The
/// lists contain only processors of the affinity mask of the thread that builds the pool.
///
/// ```
/// use heist::{BuildError, Pin, Pool};
///
/// let pool = match Pool::builder().workers(2).pin(Pin::Compact).build() {
///     // This system cannot pin threads.
///     Err(BuildError::Pinning { .. }) => Pool::builder().workers(2).build()?,
///     built => built?,
/// };
/// assert_eq!(pool.install(|| 6 * 7), 42);
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pin {
    /// The system places the threads, and moves them. This is the default.
    #[default]
    None,
    /// All processors, in the order of their numbers. On most machines the numbers say little of what is near.
    InOrder,
    /// These processors, in this order. A processor may be in the list several times.
    Processors(Vec<usize>),
    /// All processors of a NUMA node before those of the next one. In a node, all processors that share a cache before
    /// those of the next cache. Of these, one processor of each physical core before the second one of any. For workers
    /// that share data.
    Compact,
    /// One processor of each NUMA node in turn, and in a node one of each shared cache in turn. All physical cores come
    /// before the second processor of any. For workers that need memory bandwidth or caches more than each other's data.
    Spread,
}

impl Pin {
    /// Returns where the workers are to be pinned, or `None` if they are not.
    pub(crate) fn resolve(&self) -> Result<Option<Pins>, BuildError> {
        if *self == Self::None {
            return Ok(None);
        }
        let unable = |source| BuildError::Pinning { source };
        let everywhere = Mask::of_thread().map_err(unable)?;
        let list = self.list(&everywhere.processors().collect(), Topology::detect)?;
        everywhere.try_out().map_err(unable)?;
        Ok(Some(Pins::new(everywhere, &list)))
    }

    /// Returns the list of processors, which is not empty unless `allowed` is.
    fn list(
        &self,
        allowed: &CpuSet,
        detect: impl FnOnce() -> Topology,
    ) -> Result<Vec<usize>, BuildError> {
        Ok(match self {
            Self::None => Vec::new(),
            Self::InOrder => allowed.as_slice().to_vec(),
            Self::Processors(list) if list.is_empty() => return Err(BuildError::NoProcessors),
            Self::Processors(list) => match list.iter().find(|&&cpu| !allowed.contains(cpu)) {
                None => list.clone(),
                Some(&processor) => {
                    let allowed = allowed.clone();
                    return Err(BuildError::ProcessorNotAllowed { processor, allowed });
                }
            },
            Self::Compact => detect().compact(allowed),
            Self::Spread => detect().spread(allowed),
        })
    }
}

#[cfg(test)]
mod tests {
    use heist_testkit::machine::machine;

    use super::*;

    /// Returns the list on a machine of two nodes where the process may use some of the processors.
    fn list(pin: &Pin) -> Result<Vec<usize>, BuildError> {
        let root = machine("0 1 2 | 3 4 5");
        pin.list(&"1-4".parse().expect("a list"), || Topology::from_root(root.path()))
    }

    #[test]
    fn lists_contain_only_allowed_processors() {
        assert_eq!(list(&Pin::InOrder).expect("a list"), [1, 2, 3, 4]);
        assert_eq!(list(&Pin::Compact).expect("a list"), [1, 2, 3, 4]);
        assert_eq!(list(&Pin::Spread).expect("a list"), [1, 3, 2, 4]);
        assert_eq!(list(&Pin::Processors(vec![4, 1, 4])).expect("a list"), [4, 1, 4]);
    }

    #[test]
    fn an_empty_list_is_an_error() {
        let error = list(&Pin::Processors(vec![])).expect_err("an empty list");
        assert!(matches!(error, BuildError::NoProcessors), "{error:?}");
        assert!(error.to_string().contains("name at least one"), "{error}");
    }

    #[test]
    fn a_processor_outside_of_the_mask_is_an_error() {
        for asked in [vec![0], vec![1, 2, 5], vec![usize::MAX]] {
            let processor = asked.iter().copied().find(|cpu| !(1..=4).contains(cpu));
            let error = list(&Pin::Processors(asked)).expect_err("not allowed");
            assert!(error.to_string().contains("(1-4): name some of these"), "{error}");
            match error {
                BuildError::ProcessorNotAllowed { processor: named, .. } => {
                    assert_eq!(Some(named), processor);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn no_pin_asks_the_system_for_nothing() {
        assert!(Pin::None.resolve().expect("nothing to do").is_none());
    }
}
