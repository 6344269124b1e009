//! Positions on a timeline, and its resolution.

use heist_bench::record::Traced;

/// The resolution of a timeline: events closer together than a column are drawn as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Detail {
    columns: u32,
}

impl Detail {
    /// Returns the finest resolution that keeps a page with this number of threads at about a megabyte.
    pub(super) fn for_lanes(lanes: usize) -> Self {
        const ALL: usize = 75_000;
        Self { columns: (ALL / lanes.max(1)).clamp(100, 8_000) as u32 }
    }
}

/// The time axis of one trace.
pub(super) struct Scale {
    pub(super) columns: u32,
    pub(super) nanoseconds: u64,
}

impl Scale {
    /// Covers the length of the trace, or more if events happen later.
    pub(super) fn new(traced: &Traced, detail: Detail) -> Self {
        let slices = traced.lanes.iter().flat_map(|lane| lane.busy.iter().chain(&lane.asleep));
        let steals = traced.lanes.iter().flat_map(|lane| &lane.steals);
        let last = slices.map(|&(_, to)| to).chain(steals.map(|&(when, ..)| when)).max();
        let nanoseconds = traced.nanoseconds.max(last.unwrap_or_default()).max(1);
        Self { columns: detail.columns, nanoseconds }
    }

    pub(super) fn place(&self, nanoseconds: u64) -> f64 {
        f64::from(self.columns) * (nanoseconds as f64 / self.nanoseconds as f64)
    }

    /// Returns the ranges of columns that the slices touch, in order: each at least one column wide, with a
    /// gap between neighbours.
    fn columns(&self, slices: &[(u64, u64)]) -> Vec<(u32, u32)> {
        let mut sorted = slices.to_vec();
        sorted.sort_unstable();
        let mut columns: Vec<(u32, u32)> = Vec::new();
        for (from, to) in sorted {
            let from = (self.place(from) as u32).min(self.columns - 1);
            let to = (self.place(to).ceil() as u32).max(from + 1);
            match columns.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => columns.push((from, to)),
            }
        }
        columns
    }

    /// Returns the slices as a path at this height.
    pub(super) fn path(&self, slices: &[(u64, u64)], y: u32) -> String {
        self.columns(slices).iter().map(|(from, to)| format!("M{from} {y}h{}", to - from)).collect()
    }
}

#[cfg(test)]
mod tests {
    use heist_bench::record::Lane;

    use super::*;

    const SCALE: Scale = Scale { columns: 100, nanoseconds: 1_000 };

    #[test]
    fn slices_within_a_column_are_merged() {
        assert_eq!(
            SCALE.columns(&[(0, 20), (25, 40), (80, 81), (500, 400)]),
            [(0, 4), (8, 9), (50, 51)]
        );
    }

    #[test]
    fn slices_may_come_in_any_order_and_overlap() {
        assert_eq!(SCALE.columns(&[(500, 600), (0, 1_000)]), [(0, 100)]);
    }

    #[test]
    fn the_scale_covers_all_events() {
        let lane = Lane { busy: vec![(0, 50)], steals: vec![(70, 9, 1)], ..Lane::default() };
        let traced = Traced { lanes: vec![lane], ..Traced::default() };
        let scale = Scale::new(&traced, Detail::for_lanes(1));
        assert_eq!(scale.nanoseconds, 70);
        assert_eq!(scale.columns(&[(70, 70)]), [(7_999, 8_000)]);
    }

    #[test]
    fn many_threads_have_a_lower_resolution() {
        assert_eq!(Detail::for_lanes(0), Detail { columns: 8_000 });
        assert_eq!(Detail::for_lanes(40), Detail { columns: 1_875 });
        assert_eq!(Detail::for_lanes(5_000), Detail { columns: 100 });
    }
}
