//! The number of steals between each pair of threads.

use heist_bench::record::Traced;

/// All steals of one thread from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stolen {
    pub(super) thief: usize,
    pub(super) victim: usize,
    pub(super) steals: u64,
    pub(super) tasks: u64,
}

/// Returns all pairs with steals, the most frequent first. Threads are identified by their index. A thread
/// never steals from itself.
pub(super) fn pairs(traced: &Traced) -> Vec<Stolen> {
    let lanes = traced.lanes.len();
    let mut pairs: Vec<Stolen> = Vec::new();
    for (thief, lane) in traced.lanes.iter().enumerate() {
        let known = |&(victim, steals, _): &(usize, u64, u64)| {
            victim < lanes && victim != thief && steals > 0
        };
        let from = lane.totals().steals.into_iter().filter(known);
        pairs.extend(from.map(|(victim, steals, tasks)| Stolen { thief, victim, steals, tasks }));
    }
    pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.steals), pair.thief, pair.victim));
    pairs
}

#[cfg(test)]
mod tests {
    use heist_bench::record::Lane;

    use super::*;

    #[test]
    fn steals_of_a_pair_are_summed_and_unknown_threads_are_left_out() {
        let lane =
            |steals: &[(u64, usize, usize)]| Lane { steals: steals.to_vec(), ..Lane::default() };
        let lanes = vec![lane(&[(5, 1, 2)]), lane(&[(1, 0, 1), (2, 0, 4), (3, 7, 1), (4, 1, 1)])];
        let found = pairs(&Traced { lanes, ..Traced::default() });
        let pair = |thief, victim, steals, tasks| Stolen { thief, victim, steals, tasks };
        assert_eq!(found, [pair(1, 0, 2, 5), pair(0, 1, 1, 2)]);
    }
}
