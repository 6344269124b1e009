//! A set of processors, in the notation of the Linux kernel: `0-3,8`.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// The upper bound of processor numbers. It exceeds what any kernel supports, and keeps a malformed range
/// such as `0-18446744073709551615` from filling the memory.
const MAX_CPUS: usize = 1 << 16;

/// A set of processors, identified by the numbers that the operating system gives them.
///
/// It is parsed and printed in the list format of the Linux kernel.
///
/// ```
/// use heist::topology::CpuSet;
///
/// let cpus: CpuSet = "8,0-3".parse()?;
/// assert_eq!(cpus.as_slice(), [0, 1, 2, 3, 8]);
/// assert_eq!(cpus.to_string(), "0-3,8");
/// # Ok::<(), heist::topology::ParseCpuSetError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet(Vec<usize>);

impl CpuSet {
    /// Returns the number of processors in the set.
    ///
    /// ```
    /// # use heist::topology::CpuSet;
    /// assert_eq!("0-3,8".parse::<CpuSet>()?.len(), 5);
    /// # Ok::<(), heist::topology::ParseCpuSetError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if the set contains no processor. A NUMA node that consists only of memory has an empty
    /// set.
    ///
    /// ```
    /// # use heist::topology::CpuSet;
    /// assert!(CpuSet::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the numbers of the processors in ascending order.
    ///
    /// ```
    /// # use heist::topology::CpuSet;
    /// assert_eq!("2,0-1".parse::<CpuSet>()?.as_slice(), [0, 1, 2]);
    /// # Ok::<(), heist::topology::ParseCpuSetError>(())
    /// ```
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }

    /// Returns `true` if the set contains the processor.
    ///
    /// ```
    /// # use heist::topology::CpuSet;
    /// let cpus: CpuSet = "0-3".parse()?;
    /// assert!(cpus.contains(3) && !cpus.contains(4));
    /// # Ok::<(), heist::topology::ParseCpuSetError>(())
    /// ```
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// Returns `true` if the set contains every processor of `other`.
    ///
    /// ```
    /// # use heist::topology::CpuSet;
    /// let node: CpuSet = "0-7".parse()?;
    /// assert!(node.is_superset(&"2,6".parse()?));
    /// # Ok::<(), heist::topology::ParseCpuSetError>(())
    /// ```
    pub fn is_superset(&self, other: &Self) -> bool {
        other.0.iter().all(|&cpu| self.contains(cpu))
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut cpus: Vec<_> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        Self(cpus)
    }
}

impl FromStr for CpuSet {
    type Err = ParseCpuSetError;

    fn from_str(list: &str) -> Result<Self, Self::Err> {
        let mut cpus = Vec::new();
        for part in list.trim().split(',').filter(|part| !part.is_empty()) {
            let malformed = || ParseCpuSetError { part: part.to_owned() };
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<usize>().map_err(|_| malformed());
            let (first, last) = (number(first)?, number(last)?);
            if first > last || last >= MAX_CPUS {
                return Err(malformed());
            }
            cpus.extend(first..=last);
        }
        Ok(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<_> = self
            .0
            .chunk_by(|a, b| a + 1 == *b)
            .map(|range| match range {
                [only] => only.to_string(),
                [first, .., last] => format!("{first}-{last}"),
                [] => String::new(),
            })
            .collect();
        f.pad(&ranges.join(","))
    }
}

/// A text is not a list of processors.
///
/// ```
/// let error = "0-3,x".parse::<heist::topology::CpuSet>().unwrap_err();
/// assert_eq!(error.to_string(), r#""x" is neither a processor number nor a range such as 0-3"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseCpuSetError {
    /// The part of the list that is malformed.
    pub part: String,
}

impl fmt::Display for ParseCpuSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is neither a processor number nor a range such as 0-3", self.part)
    }
}

impl Error for ParseCpuSetError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_the_inverse_of_parse() {
        for list in ["0", "0-3", "0-3,8", "1,3,5-6", ""] {
            assert_eq!(format!("{list}\n").parse::<CpuSet>().unwrap().to_string(), list);
        }
        assert_eq!("3,1,1-2".parse::<CpuSet>().unwrap().as_slice(), [1, 2, 3]);
    }

    #[test]
    fn malformed_lists_are_errors() {
        for text in ["x", "1-", "-1", "3-1", "0-99999999999999999999", "0-18446744073709551615"] {
            assert_eq!(text.parse::<CpuSet>().unwrap_err().part, text);
        }
    }
}
