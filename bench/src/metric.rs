//! The kinds of numbers that a sample holds, and how they are shown.

/// One kind of number.
#[derive(Debug)]
pub struct Metric {
    /// Its name in the JSON, where the values are as they were measured.
    pub key: &'static str,
    /// Its name in the tables, with the unit.
    pub title: &'static str,
    /// What one would like to see.
    pub better: Better,
    /// How much of a value is one of that unit.
    pub(crate) unit: f64,
    /// Digits after the point, in the tables and in the JSON.
    pub(crate) digits: (usize, usize),
    /// Is an interval shown beside the median?
    pub(crate) spread: bool,
    /// What a ratio of it is called; `None` if there is no table of ratios.
    pub(crate) ratio: Option<&'static str>,
}

/// What one would like to see of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// As of a time.
    Less,
    /// As of steals.
    More,
}

/// All, each key once. Cases that say more of what an operation is have titles of their own.
const ALL: [&Metric; 11] =
    [&TIME, &STEALS, &P50, &P99, &CPU, &SWITCHES, &CONTENTION, &WAKE_UPS, &IGNITION, &TOTAL, &LIT];

/// The one that has this name in the JSON.
pub fn named(key: &str) -> Option<&'static Metric> {
    ALL.into_iter().find(|metric| metric.key == key)
}

/// Is it how long something took, by its name in the JSON? Of that, less is better.
pub fn is_time(key: &str) -> bool {
    key.ends_with("nanoseconds")
}

impl Metric {
    /// Is it how long something took?
    pub fn is_time(&self) -> bool {
        is_time(self.key)
    }

    /// As the tables have it.
    pub fn show(&self, value: f64) -> String {
        format!("{:.*}", self.digits.0, value / self.unit)
    }
}

/// With so many digits after the point, as the JSON has it.
pub(crate) fn round(value: f64, digits: usize) -> f64 {
    let unit = 10_f64.powi(digits as i32);
    (value * unit).round() / unit
}

pub(crate) const TIME: Metric = Metric {
    key: "nanoseconds",
    title: "ns per operation",
    better: Better::Less,
    unit: 1.0,
    digits: (2, 3),
    spread: true,
    ratio: Some("time"),
};

/// The same, where an operation is a task.
pub(crate) const TASK: Metric = Metric { title: "ns per task", ..TIME };

/// The same, where an operation is a fork with its join.
pub(crate) const JOIN: Metric = Metric { title: "ns per join", ..TIME };

/// The same, where an operation is a node of a tree.
pub(crate) const NODE: Metric = Metric { title: "ns per node", ..TIME };

/// The same, where an operation is an item of an array.
pub(crate) const ITEM: Metric = Metric { title: "ns per item", ..TIME };

/// How much a thief got meanwhile.
pub(crate) const STEALS: Metric = Metric {
    key: "steals_per_second",
    title: "million steals per second",
    better: Better::More,
    unit: 1e6,
    digits: (2, 0),
    spread: false,
    ratio: None,
};

/// Of a number of waits in one sample.
pub(crate) const P50: Metric = Metric {
    key: "p50_nanoseconds",
    title: "µs until the answer, p50",
    better: Better::Less,
    unit: 1e3,
    digits: (1, 0),
    spread: true,
    ratio: Some("p50"),
};

/// Of a number of waits in one sample.
pub(crate) const P99: Metric = Metric {
    key: "p99_nanoseconds",
    title: "µs until the answer, p99",
    better: Better::Less,
    unit: 1e3,
    digits: (1, 0),
    spread: true,
    ratio: Some("p99"),
};

/// What the whole process takes, user and system.
pub(crate) const CPU: Metric = Metric {
    key: "cpu_nanoseconds_per_second",
    title: "ms of processor time per second",
    better: Better::Less,
    unit: 1e6,
    digits: (3, 0),
    spread: true,
    ratio: None,
};

/// Of the whole process, but for the times that this program slept by itself.
pub(crate) const SWITCHES: Metric = Metric {
    key: "context_switches_per_1000",
    title: "context switches per 1,000 tasks",
    better: Better::Less,
    unit: 1.0,
    digits: (3, 3),
    spread: true,
    ratio: Some("context switches"),
};

/// Locks that were found taken, as the pool counts them.
pub(crate) const CONTENTION: Metric = Metric {
    key: "lock_contention_per_1000",
    title: "contended locks per 1,000 tasks",
    better: Better::Less,
    unit: 1.0,
    digits: (3, 3),
    spread: true,
    ratio: Some("contended locks"),
};

/// Threads that were woken, as the pool counts them.
pub(crate) const WAKE_UPS: Metric = Metric {
    key: "wake_ups_per_1000",
    title: "wake-ups per 1,000 tasks",
    better: Better::Less,
    unit: 1.0,
    digits: (3, 3),
    spread: true,
    ratio: None,
};

/// From the submission until every worker has run something.
pub(crate) const IGNITION: Metric = Metric {
    key: "ignition_nanoseconds",
    title: "µs until every worker has run something",
    better: Better::Less,
    unit: 1e3,
    digits: (1, 0),
    spread: true,
    ratio: Some("time until every worker has run something"),
};

/// From the submission until all is done.
pub(crate) const TOTAL: Metric = Metric {
    key: "total_nanoseconds",
    title: "µs until all is done",
    better: Better::Less,
    unit: 1e3,
    digits: (1, 0),
    spread: true,
    ratio: Some("time until all is done"),
};

/// Workers that have run something by the end.
pub(crate) const LIT: Metric = Metric {
    key: "workers_lit",
    title: "workers that ran something",
    better: Better::More,
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

    /// So that whoever compares two files can say what is better.
    #[test]
    fn every_case_has_metrics_that_are_found() {
        for row in crate::all_rows() {
            for metric in row.metrics {
                assert_eq!(named(metric.key).unwrap().better, metric.better, "{}", metric.key);
            }
        }
    }

    #[test]
    fn tables_have_units_and_the_json_has_what_was_measured() {
        assert_eq!(STEALS.show(12_345_678.0), "12.35");
        assert_eq!(round(12_345_678.4, STEALS.digits.1), 12_345_678.0);
        assert_eq!(round(1.2345, TIME.digits.1), 1.235);
        assert_eq!(P50.show(12_345.0), "12.3");
    }
}
