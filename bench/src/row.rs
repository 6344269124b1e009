//! What is measured: a case, everyone that takes part in it, and what a sample of it holds.

use std::time::Duration;

use heist::trace::Trace;

use crate::cores;
use crate::item::Kind;
use crate::metric::Metric;
use crate::pools::traced;
use crate::target::Target;

/// One measurement of one queue or pool in one case.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// One for each of the row's metrics.
    pub(crate) values: Vec<f64>,
    /// It was not what it should have been, and repeating it did not help: a thread that should
    /// have run beside the other did not.
    pub(crate) disturbed: bool,
    /// Where the values are percentiles of many times: all of them, in nanoseconds.
    pub(crate) answers: Vec<f64>,
}

impl Sample {
    pub(crate) fn of(values: impl Into<Vec<f64>>) -> Self {
        Self { values: values.into(), disturbed: false, answers: Vec::new() }
    }

    /// Of a case in which nothing but time per operation is measured.
    pub(crate) fn new(time: Duration, operations: u64) -> Self {
        Self::of([nanoseconds(time) / operations as f64])
    }
}

pub(crate) fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

/// Measures once.
pub(crate) type Run = Box<dyn Fn() -> Sample + Send>;

/// One queue or pool in one case.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    /// It runs on the measuring thread, whatever the number of workers.
    pub(crate) sequential: bool,
    /// One a round.
    pub(crate) samples: Vec<Sample>,
}

impl Entry {
    /// Of the row's metric at this place, one a round.
    pub(crate) fn values(&self, place: usize) -> impl Iterator<Item = f64> + '_ {
        self.samples.iter().map(move |sample| sample.values[place])
    }

    /// Runs once, not measured, in a pool that keeps a trace; `None` if there is no such pool.
    pub(crate) fn trace(&self) -> Option<Trace> {
        cores::roam();
        traced::run(|| drop((self.run)()))
    }

    pub(crate) fn disturbed(&self) -> usize {
        self.samples.iter().filter(|sample| sample.disturbed).count()
    }
}

/// Where the threads of a case run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The measuring thread on the owner's core. Those that it starts find their own.
    Pinned,
    /// Wherever the scheduler puts them, as in the programs that use a pool. A thread inherits
    /// the cores of the one that starts it, so the measuring thread must be free as well.
    Free,
}

/// One case, with one item type where it has items, and everyone that takes part.
pub(crate) struct Row {
    pub(crate) workload: &'static str,
    /// What goes through a queue; `None` for a pool.
    pub(crate) item: Option<Kind>,
    pub(crate) case: String,
    /// The case in words.
    pub(crate) title: String,
    pub(crate) metrics: Vec<&'static Metric>,
    /// Whom the tables of ratios compare with, one table each, if they were built in.
    pub(crate) references: Vec<&'static str>,
    pub(crate) targets: Vec<Target>,
    pub(crate) threads: Threads,
    /// Of a pool, where cases differ by it: more than there are cores is worth a remark.
    pub(crate) workers: Option<usize>,
    /// The name of the row with the same work for one worker: from the two comes an efficiency.
    pub(crate) one_worker: Option<String>,
    pub(crate) entries: Vec<Entry>,
}

impl Row {
    /// A case of queues through which items of one kind go; nobody takes part yet.
    pub(crate) fn of_queues(
        workload: &'static str,
        item: Kind,
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

    /// A case of pools; nobody takes part yet.
    pub(crate) fn of_pools(
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

    pub(crate) fn enter(&mut self, name: &'static str, run: impl Fn() -> Sample + Send + 'static) {
        let run: Run = Box::new(run);
        self.entries.push(Entry { name, run, sequential: false, samples: Vec::new() });
    }

    /// One that has no workers: what the others are to beat.
    pub(crate) fn enter_sequential(
        &mut self,
        name: &'static str,
        run: impl Fn() -> Sample + Send + 'static,
    ) {
        let run: Run = Box::new(run);
        self.entries.push(Entry { name, run, sequential: true, samples: Vec::new() });
    }

    /// The name by which it is asked for.
    pub(crate) fn id(&self) -> String {
        let item = self.item.map(|item| format!("{}/", item.id())).unwrap_or_default();
        format!("{}/{item}{}", self.workload, self.case)
    }

    /// Has everyone been measured, at least once?
    pub(crate) fn is_measured(&self) -> bool {
        self.entries.iter().all(|entry| !entry.samples.is_empty())
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Where in a sample the values of this metric are; `None` if the row has it not.
    pub(crate) fn place(&self, metric: &Metric) -> Option<usize> {
        self.metrics.iter().position(|own| own.key == metric.key)
    }

    /// The values of one entry, one a round; `None` if there is no such entry or metric.
    pub(crate) fn values(&self, name: &str, metric: &Metric) -> Option<Vec<f64>> {
        Some(self.entry(name)?.values(self.place(metric)?).collect())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::metric;

    /// A row with nothing but times, as if three rounds had been measured.
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
        let with_item = Row::of_queues("deque", Kind::Number, "empty", "", vec![]);
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
