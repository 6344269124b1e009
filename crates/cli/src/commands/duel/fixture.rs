//! Sample records for the tests.

use heist_bench::record::{Latencies, Record, Series};

/// Returns the times of one peer, round by round.
pub(super) fn series(case: &str, by: &str, times: &[f64]) -> Series {
    let values = [("nanoseconds".to_owned(), times.to_vec())].into();
    series_of(case, by, values)
}

/// Returns the latencies of one peer, p50 and p99, round by round.
pub(super) fn answers(by: &str, half: &[f64], most: &[f64]) -> Series {
    let values = [("p50_nanoseconds", half), ("p99_nanoseconds", most)];
    series_of("latency", by, values.map(|(key, times)| (key.to_owned(), times.to_vec())).into())
}

fn series_of(case: &str, by: &str, values: std::collections::BTreeMap<String, Vec<f64>>) -> Series {
    Series {
        workload: "duel".to_owned(),
        case: case.to_owned(),
        title: format!("title of {case}"),
        workers: case.split_once('/').and_then(|(_, workers)| workers.parse().ok()),
        by: by.to_owned(),
        values,
        ..Series::default()
    }
}

/// Returns a record with as many rounds as its first series has.
pub(super) fn record(samples: Vec<Series>) -> Record {
    let rounds =
        samples.first().and_then(|series| series.values.values().next()).map_or(0, Vec::len);
    Record { rounds, samples, ..Record::default() }
}

/// Returns a record in which heist is twice as fast with two workers, and faster than every peer.
pub(super) fn all_wins() -> Record {
    let mut samples = Vec::new();
    for workload in ["uniform", "skewed", "recursive"] {
        for (workers, time) in [(1, 200.0), (2, 100.0)] {
            let case = format!("{workload}/{workers}");
            let names =
                [("heist", 1.0), ("heist-locked", 1.5), ("heist-global", 4.0), ("rayon", 2.0)];
            for (by, factor) in names {
                let times: Vec<f64> =
                    (0..7).map(|round| time * factor + f64::from(round)).collect();
                samples.push(series(&case, by, &times));
            }
        }
    }
    samples.push(answers("heist", &[9e3; 7], &[2e4; 7]));
    samples.push(answers("rayon", &[1e4; 7], &[3e4; 7]));
    let asked = Latencies {
        case: "duel/latency".to_owned(),
        by: "heist".to_owned(),
        buckets: vec![(10_000, 200), (30_000, 150)],
    };
    Record { latencies: vec![asked], ..record(samples) }
}
