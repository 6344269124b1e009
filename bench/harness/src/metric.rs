//! The metrics that a sample holds, and how they are shown.

/// One metric that a sample can hold.
#[derive(Debug)]
pub struct Metric {
    /// The name in the JSON, which has the values as measured.
    pub key: &'static str,
    /// The name in the tables, with the unit.
    pub title: &'static str,
    /// Whether less or more is better.
    pub better: Better,
    /// How much of a measured value is one unit of the tables.
    pub unit: f64,
    /// The digits after the point, in the tables and in the JSON.
    pub digits: (usize, usize),
    /// Whether an interval is shown beside the median.
    pub spread: bool,
    /// The noun for a ratio of it; `None` if there is no table of ratios.
    pub ratio: Option<&'static str>,
}

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Less is better, as for a time.
    Less,
    /// More is better, as for steals.
    More,
}

/// All metrics, each key once. Cases that define an operation more exactly have titles of their own.
const ALL: [&Metric; 16] = [
    &TIME,
    &STEALS,
    &P50,
    &P99,
    &P999,
    &LONGEST,
    &THREADS,
    &CPU,
    &SWITCHES,
    &CONTENTION,
    &WAKE_UPS,
    &IGNITION,
    &TOTAL,
    &LIT,
    &PROCESS_CPU,
    &PROCESS_SWITCHES,
];

/// Returns the metric with this name in the JSON.
pub fn named(key: &str) -> Option<&'static Metric> {
    ALL.into_iter().find(|metric| metric.key == key)
}

/// Returns whether the metric with this name in the JSON is a duration. Shorter is better.
pub fn is_time(key: &str) -> bool {
    key.ends_with("nanoseconds")
}

impl Metric {
    /// Returns whether it is a duration.
    pub fn is_time(&self) -> bool {
        is_time(self.key)
    }

    /// Formats a value as the tables show it.
    pub fn show(&self, value: f64) -> String {
        format!("{:.*}", self.digits.0, value / self.unit)
    }
}

/// Rounds a value to this number of digits after the point, as the JSON has it.
pub fn round(value: f64, digits: usize) -> f64 {
    let unit = 10_f64.powi(digits as i32);
    (value * unit).round() / unit
}

/// The time of an operation.
pub const TIME: Metric = Metric {
    key: "nanoseconds",
    title: "ns per operation",
    better: Better::Less,
    unit: 1.0,
    digits: (2, 3),
    spread: true,
    ratio: Some("time"),
};

/// [`TIME`] where an operation is a task.
pub const TASK: Metric = Metric { title: "ns per task", ..TIME };

/// [`TIME`] where an operation is a fork with its join.
pub const JOIN: Metric = Metric { title: "ns per join", ..TIME };

/// [`TIME`] where an operation is a node of a tree.
pub const NODE: Metric = Metric { title: "ns per node", ..TIME };

/// [`TIME`] where an operation is an item of an array.
pub const ITEM: Metric = Metric { title: "ns per item", ..TIME };

/// How many items a thief steals while the owner works.
pub const STEALS: Metric = Metric {
    key: "steals_per_second",
    title: "million steals per second",
    better: Better::More,
    unit: 1e6,
    digits: (2, 0),
    spread: false,
    ratio: None,
};

/// The median of the waits in one sample.
pub const P50: Metric = Metric {
    key: "p50_nanoseconds",
    title: "µs until the answer, p50",
    better: Better::Less,
    unit: 1e3,
    digits: (1, 0),
    spread: true,
    ratio: Some("p50"),
};

/// The 99th percentile of the waits in one sample.
pub const P99: Metric = Metric {
    key: "p99_nanoseconds",
    title: "µs until the answer, p99",
    better: Better::Less,
    unit: 1e3,
    digits: (1, 0),
    spread: true,
    ratio: Some("p99"),
};

/// The time within which 999 of 1,000 waits in one sample ended.
pub const P999: Metric = Metric {
    key: "p999_nanoseconds",
    title: "µs until the answer, p99.9",
    better: Better::Less,
    unit: 1e3,
    digits: (1, 0),
    spread: true,
    ratio: Some("p99.9"),
};

/// The longest of the waits in one sample.
pub const LONGEST: Metric = Metric {
    key: "longest_nanoseconds",
    title: "µs until the answer, longest",
    better: Better::Less,
    unit: 1e3,
    digits: (1, 0),
    spread: true,
    ratio: Some("longest time"),
};

/// The largest number of threads that worked on a sample and were alive at the same time.
pub const THREADS: Metric = Metric {
    key: "threads",
    title: "threads at the peak",
    better: Better::Less,
    unit: 1.0,
    digits: (0, 0),
    spread: true,
    ratio: None,
};

/// The processor time of the whole process, user and system.
pub const CPU: Metric = Metric {
    key: "cpu_nanoseconds_per_second",
    title: "ms of processor time per second",
    better: Better::Less,
    unit: 1e6,
    digits: (3, 0),
    spread: true,
    ratio: None,
};

/// The context switches of the whole process, without those of the measuring thread's own sleeps.
pub const SWITCHES: Metric = Metric {
    key: "context_switches_per_1000",
    title: "context switches per 1,000 tasks",
    better: Better::Less,
    unit: 1.0,
    digits: (3, 3),
    spread: true,
    ratio: Some("context switches"),
};

/// The locks that were held by another thread, as the pool counts them.
pub const CONTENTION: Metric = Metric {
    key: "lock_contention_per_1000",
    title: "contended locks per 1,000 tasks",
    better: Better::Less,
    unit: 1.0,
    digits: (3, 3),
    spread: true,
    ratio: Some("contended locks"),
};

/// The threads that were woken, as the pool counts them.
pub const WAKE_UPS: Metric = Metric {
    key: "wake_ups_per_1000",
    title: "wake-ups per 1,000 tasks",
    better: Better::Less,
    unit: 1.0,
    digits: (3, 3),
    spread: true,
    ratio: None,
};

/// The time from the submission until every worker has run something.
pub const IGNITION: Metric = Metric {
    key: "ignition_nanoseconds",
    title: "µs until every worker has run something",
    better: Better::Less,
    unit: 1e3,
    digits: (1, 0),
    spread: true,
    ratio: Some("time until every worker has run something"),
};

/// The time from the submission until all work is done.
pub const TOTAL: Metric = Metric {
    key: "total_nanoseconds",
    title: "µs until all is done",
    better: Better::Less,
    unit: 1e3,
    digits: (1, 0),
    spread: true,
    ratio: Some("time until all is done"),
};

/// The number of workers that have run something by the end.
pub const LIT: Metric = Metric {
    key: "workers_lit",
    title: "workers that ran something",
    better: Better::More,
    unit: 1.0,
    digits: (0, 0),
    spread: false,
    ratio: None,
};

/// The processor time of a process that measures one case.
pub const PROCESS_CPU: Metric = Metric {
    key: "cpu_milliseconds",
    title: "ms of processor time of the process",
    better: Better::Less,
    unit: 1.0,
    digits: (0, 3),
    spread: false,
    ratio: None,
};

/// The context switches of a process that measures one case.
pub const PROCESS_SWITCHES: Metric = Metric {
    key: "switches",
    title: "context switches of the process",
    better: Better::Less,
    unit: 1.0,
    digits: (0, 0),
    spread: false,
    ratio: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_key() {
        assert_eq!(named("steals_per_second").unwrap().better, Better::More);
        assert!(named("nanoseconds").unwrap().is_time());
        assert!(!named("cpu_nanoseconds_per_second").unwrap().is_time());
        assert!(named("unheard_of").is_none());
    }

    #[test]
    fn tables_have_units_and_the_json_has_what_was_measured() {
        assert_eq!(STEALS.show(12_345_678.0), "12.35");
        assert_eq!(round(12_345_678.4, STEALS.digits.1), 12_345_678.0);
        assert_eq!(round(1.2345, TIME.digits.1), 1.235);
        assert_eq!(P50.show(12_345.0), "12.3");
    }
}
