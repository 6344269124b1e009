//! A case, the entries that take part in it, and what a sample of it holds.

use std::time::Duration;

use crate::item::ItemKind;
use crate::metric::Metric;
use crate::target::Target;

/// One measurement of one entry in one case.
#[derive(Debug, Clone)]
pub struct Sample {
    /// One value for each of the row's metrics.
    pub values: Vec<f64>,
    /// Whether the measurement failed to show what it should: a thread that should have run beside another one did
    /// not, and repeating did not help.
    pub disturbed: bool,
    /// Where the values are percentiles of many times: all of them, in nanoseconds.
    pub answers: Vec<f64>,
    /// Where the first value is the median of many runs: all of them.
    pub runs: Vec<f64>,
}

impl Sample {
    /// Returns a sample with these values, which nothing disturbed.
    pub fn of(values: impl Into<Vec<f64>>) -> Self {
        Self { values: values.into(), disturbed: false, answers: Vec::new(), runs: Vec::new() }
    }

    /// Returns a sample of a case that measures only the time per operation.
    pub fn new(time: Duration, operations: u64) -> Self {
        Self::of([nanoseconds(time) / operations as f64])
    }
}

/// Converts a duration to nanoseconds.
pub fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

/// A function that measures once.
pub type Run = Box<dyn Fn() -> Sample + Send>;

/// A queue or pool that takes part in a case.
pub struct Entry {
    /// The name in tables and records.
    pub name: &'static str,
    /// Measures it once.
    pub run: Run,
    /// Whether it runs on the measuring thread alone, whatever the number of workers.
    pub sequential: bool,
    /// One sample for each round.
    pub samples: Vec<Sample>,
}

impl Entry {
    /// Returns the values of the row's metric at this index, one for each round.
    pub fn values(&self, place: usize) -> impl Iterator<Item = f64> + '_ {
        self.samples.iter().map(move |sample| sample.values[place])
    }

    /// Returns the number of disturbed samples.
    pub fn disturbed(&self) -> usize {
        self.samples.iter().filter(|sample| sample.disturbed).count()
    }
}

/// Where the threads of a case run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// The measuring thread runs on the owner's processor. The threads that it starts pin themselves.
    Pinned,
    /// All threads run where the scheduler puts them, as in programs that use a pool. A thread inherits the
    /// affinity of the thread that starts it, so the measuring thread must be free as well.
    Free,
}

/// One case, with one item type if it has items, and the entries that take part.
pub struct Row {
    /// The family of the case.
    pub workload: &'static str,
    /// The type of the items that go through a queue; `None` for a pool.
    pub item: Option<ItemKind>,
    /// The name of the case within its family.
    pub case: String,
    /// The case in words.
    pub title: String,
    /// What a sample holds.
    pub metrics: Vec<&'static Metric>,
    /// The entries that the tables of ratios compare with, one table each, if they were built in.
    pub references: Vec<&'static str>,
    /// The limits that were fixed before the run.
    pub targets: Vec<Target>,
    /// Where the threads run.
    pub threads: Threads,
    /// The number of workers of a pool, if cases differ by it. More workers than processors are worth a remark.
    pub workers: Option<usize>,
    /// The name of the row with the same work for one worker. The efficiency is computed from the two.
    pub one_worker: Option<String>,
    /// The entries that take part.
    pub entries: Vec<Entry>,
}

impl Row {
    /// Returns a case of queues through which items of one type go. It has no entries yet.
    pub fn of_queues(
        workload: &'static str,
        item: ItemKind,
        case: &str,
        title: &str,
        metrics: Vec<&'static Metric>,
    ) -> Self {
        Self {
            workload,
            item: Some(item),
            case: case.into(),
            title: title.into(),
            metrics,
            references: Vec::new(),
            targets: Vec::new(),
            threads: Threads::Pinned,
            workers: None,
            one_worker: None,
            entries: Vec::new(),
        }
    }

    /// Returns a case of pools. It has no entries yet.
    pub fn of_pools(
        workload: &'static str,
        case: String,
        title: String,
        metrics: Vec<&'static Metric>,
    ) -> Self {
        Self {
            workload,
            item: None,
            case,
            title,
            metrics,
            references: Vec::new(),
            targets: Vec::new(),
            threads: Threads::Free,
            workers: None,
            one_worker: None,
            entries: Vec::new(),
        }
    }

    /// Adds an entry.
    pub fn enter(&mut self, name: &'static str, run: impl Fn() -> Sample + Send + 'static) {
        let run: Run = Box::new(run);
        self.entries.push(Entry { name, run, sequential: false, samples: Vec::new() });
    }

    /// Adds an entry without workers, as a baseline.
    pub fn enter_sequential(
        &mut self,
        name: &'static str,
        run: impl Fn() -> Sample + Send + 'static,
    ) {
        let run: Run = Box::new(run);
        self.entries.push(Entry { name, run, sequential: true, samples: Vec::new() });
    }

    /// Returns the name by which the case is selected.
    pub fn id(&self) -> String {
        let item = self.item.map(|item| format!("{}/", item.id())).unwrap_or_default();
        format!("{}/{item}{}", self.workload, self.case)
    }

    /// Returns whether every entry was measured at least once.
    pub fn is_measured(&self) -> bool {
        self.entries.iter().all(|entry| !entry.samples.is_empty())
    }

    /// Returns the entry of this name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Returns the index of this metric in a sample; `None` if the row does not have it.
    pub fn place(&self, metric: &Metric) -> Option<usize> {
        self.metrics.iter().position(|own| own.key == metric.key)
    }

    /// Returns the values of one entry, one for each round; `None` if there is no such entry or metric.
    pub fn values(&self, name: &str, metric: &Metric) -> Option<Vec<f64>> {
        Some(self.entry(name)?.values(self.place(metric)?).collect())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::metric;

    /// Returns a row with times alone, as if three rounds had been measured.
    pub(crate) fn row(case: &str, entries: &[(&'static str, [f64; 3])]) -> Row {
        let mut row =
            Row::of_pools("spawn", case.into(), format!("title of {case}"), vec![&metric::TIME]);
        for &(name, times) in entries {
            row.enter(name, || unreachable!("nothing is measured here"));
            row.entries.last_mut().unwrap().samples = times.map(|time| Sample::of([time])).into();
        }
        row
    }

    #[test]
    fn an_item_is_part_of_the_name() {
        let plain = row("inside/1", &[]);
        assert_eq!(plain.id(), "spawn/inside/1");
        let with_item = Row::of_queues("deque", ItemKind::Number, "empty", "", vec![]);
        assert_eq!(with_item.id(), "deque/u64/empty");
    }

    #[test]
    fn values_are_found_by_name_and_metric() {
        let row = row("inside/1", &[("heist", [1.0, 2.0, 3.0])]);
        assert_eq!(row.values("heist", &metric::TIME), Some(vec![1.0, 2.0, 3.0]));
        assert_eq!(row.values("heist", &metric::STEALS), None);
        assert_eq!(row.values("rayon", &metric::TIME), None);
    }
}
