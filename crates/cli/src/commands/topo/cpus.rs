//! A set of processors, as the kernel writes it: `0-3,8`.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// Their numbers, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct Cpus(Vec<usize>);

/// More than any kernel knows; a list that says otherwise is no list of processors.
const MOST: usize = 1 << 16;

impl Cpus {
    /// `None` if it is not such a list.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut numbers = Vec::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) =
                (first.trim().parse().ok()?, last.trim().parse().ok()?);
            if first > last || last >= MOST {
                return None;
            }
            numbers.extend(first..=last);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Some(Self(numbers))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn numbers(&self) -> &[usize] {
        &self.0
    }

    pub(crate) fn contains(&self, cpu: usize) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    pub(crate) fn contains_all(&self, others: &Self) -> bool {
        others.0.iter().all(|&cpu| self.contains(cpu))
    }
}

impl Display for Cpus {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let runs: Vec<_> = self
            .0
            .chunk_by(|a, b| a + 1 == *b)
            .map(|run| match run {
                [only] => only.to_string(),
                [first, .., last] => format!("{first}-{last}"),
                [] => String::new(),
            })
            .collect();
        f.pad(&runs.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_written() {
        for list in ["0", "0-3", "0-3,8", "1,3,5-6", ""] {
            assert_eq!(Cpus::parse(&format!("{list}\n")).unwrap().to_string(), list);
        }
        assert_eq!(Cpus::parse("3,1,1-2").unwrap().numbers(), [1, 2, 3]);
    }

    #[test]
    fn what_is_no_list_is_none() {
        for text in ["x", "1-", "-1", "3-1", "0-99999999999999999999", "0-18446744073709551615"] {
            assert_eq!(Cpus::parse(text), None, "{text}");
        }
    }
}
