//! With the feature `prometheus`, the counters are available in the text format of Prometheus.

#![cfg(all(feature = "prometheus", not(any(loom, shuttle))))]

use std::collections::BTreeMap;

use heist::{Pool, Stats};

/// Returns the samples by name and labels. Panics unless every line is a comment or a sample of the
/// format.
fn parse(text: &str) -> BTreeMap<&str, u64> {
    let mut described = Vec::new();
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a text");
            assert!(!help.is_empty() && !help.contains('\\'), "{line}");
            assert!(!described.contains(&name), "{name} twice");
            described.push(name);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            assert_eq!(kind.split_once(' '), Some((*described.last().unwrap(), "counter")));
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            assert!(name.starts_with(described.last().unwrap()), "{line}");
            let before = samples.insert(name, value.parse().expect("a number"));
            assert_eq!(before, None, "{line} twice");
        }
    }
    samples
}

#[test]
fn every_counter_of_every_worker() {
    let pool = Pool::builder().workers(3).build().unwrap();
    pool.spawn_batch((0..100).map(|_| || ())).join().unwrap();
    pool.stop();
    let idle = Pool::builder().workers(1).build().unwrap();
    let pools = [("a \"pool\"\n\\", pool.stats()), ("idle", idle.stats())];
    let text = Stats::prometheus(pools);
    let samples = parse(&text);
    assert_eq!(samples.len() % (4 + 2), 0);
    let of = |worker| {
        let labels = format!("{{pool=\"a \\\"pool\\\"\\n\\\\\",worker=\"{worker}\"}}");
        samples[format!("heist_tasks_completed_total{labels}").as_str()]
    };
    let by_worker: Vec<_> = ["0", "1", "2", "outside"].map(of).into();
    assert_eq!(by_worker[..3].iter().sum::<u64>(), 100);
    assert_eq!(by_worker[3], 0);
    let total: u64 = samples.values().sum();
    assert!(total >= 200, "{text}");
}
