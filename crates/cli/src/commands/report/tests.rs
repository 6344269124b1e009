//! Tests of the whole page. `ci/browser.sh` checks it in a browser.

use std::fs;
use std::path::Path;

use heist_bench::record::{Lane, Latencies, Machine, Record, Series, Totals, Traced};

use super::page;

fn read(path: &str) -> Record {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns the number of charts of each kind.
fn charts(page: &str) -> Vec<(&str, usize)> {
    ["comparison", "scaling", "latency", "timeline", "steals", "distribution", "task-times"]
        .into_iter()
        .map(|kind| (kind, page.matches(&format!("data-chart=\"{kind}\"")).count()))
        .collect()
}

#[test]
fn a_full_record_has_all_charts() {
    let page = page(&read("tests/data/made-up.json"));
    let expected = [
        ("comparison", 10),
        ("scaling", 3),
        ("latency", 1),
        ("timeline", 5),
        // There is no stealing from a shared queue.
        ("steals", 4),
        ("distribution", 5),
        ("task-times", 5),
    ];
    assert_eq!(charts(&page), expected);
    assert!(page.contains("heist bench duel --workers 1,2,4 --rounds 21 --json duel.json"));
    assert!(page.contains("in the last 5.30 ms of the run; earlier events were dropped"));
    assert!(!page.contains("NaN"));
}

#[test]
fn pages_without_traces_name_the_command() {
    for file in ["deque", "fork", "pipeline", "pool"] {
        let mut record = read(&format!("../../bench/record/{file}.json"));
        record.latencies.clear();
        record.traces.clear();
        let page = page(&record);
        let found = charts(&page);
        assert!(found[0].1 > 1, "{file}: {found:?}");
        assert!(found[2..].iter().all(|(_, count)| *count == 0), "{file}: {found:?}");
        assert!(page.contains("no latencies"), "{file}");
        assert!(page.contains("no trace"), "{file}");
        assert!(page.contains("<code>heist bench duel --json FILE</code>"), "{file}");
    }
}

/// Puts markup into every text of a record.
#[test]
fn text_of_the_file_cannot_run() {
    const EVIL: &str = "</title></script>\"'><script>alert(1)</script><img src=x onerror=alert(1)>";
    let evil = || EVIL.to_owned();
    let mut record = read("tests/data/made-up.json");
    record.arguments = vec![evil()];
    record.commit = evil();
    record.unit = evil();
    record.peers = [(evil(), evil())].into();
    let machine = &mut record.machine;
    for text in [&mut machine.cpu, &mut machine.kernel, &mut machine.rustc] {
        *text = evil();
    }
    for series in &mut record.samples {
        let values = series.values.values().next().unwrap().clone();
        series.values.insert(evil(), values);
        series.workload = evil();
        series.item = Some(evil());
        series.title = evil();
        series.by.push_str(EVIL);
        series.case = format!("{EVIL}/{}", series.case);
    }
    for latencies in &mut record.latencies {
        latencies.case = evil();
        latencies.by.push_str(EVIL);
    }
    for traced in &mut record.traces {
        traced.case = evil();
        traced.by = evil();
        traced.lanes.iter_mut().for_each(|lane| lane.name = evil());
    }
    let page = page(&record);
    let safe = "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;";
    assert!(page.matches(safe).count() > 100);
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<img").count(), 0);
    assert_eq!(page.matches("\"'>").count(), 0);
}

#[test]
fn a_record_of_zeros_makes_a_page() {
    let zeros = |by: &str| Series {
        workload: "zero".into(),
        case: "1".into(),
        workers: Some(1),
        by: by.into(),
        values: [("nanoseconds".into(), vec![0.0, 0.0]), ("steals_per_second".into(), vec![])]
            .into(),
        ..Series::default()
    };
    let lane = Lane { busy: vec![(0, 0)], asleep: vec![(0, 0)], ..Lane::default() };
    let record = Record {
        samples: vec![zeros("heist"), zeros("rayon")],
        latencies: vec![Latencies { buckets: vec![(0, 0), (0, 3)], ..Latencies::default() }],
        traces: vec![
            Traced::default(),
            Traced { lanes: vec![lane], task_times: vec![(0, 1)], ..Traced::default() },
        ],
        ..Record::default()
    };
    let page = page(&record);
    assert!(!page.contains("NaN") && !page.contains("inf%"), "{page}");
    assert!(page.contains("No thread stole"));
    assert!(page.contains("No task ended"));
}

/// Returns all attributes of the page, except those of its head.
fn attributes(page: &str) -> impl Iterator<Item = &str> {
    let shown = page.split_once("<body>").unwrap().1.split_once("<script>").unwrap().0;
    shown.split("=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0)
}

/// Returns the series of one case, for each number of workers.
fn series(by: &str, workers: &[usize], values: &[f64]) -> Vec<Series> {
    let series = |&workers: &usize| Series {
        workload: "w".into(),
        case: format!("c/{workers}"),
        workers: Some(workers),
        by: by.into(),
        values: [("nanoseconds".into(), values.to_vec())].into(),
        ..Series::default()
    };
    workers.iter().map(series).collect()
}

/// Returns samples of heist and rayon on the largest possible number of cores.
fn samples(workers: &[usize], heist: &[f64], rayon: &[f64]) -> Record {
    Record {
        samples: [series("heist", workers, heist), series("rayon", workers, rayon)].concat(),
        machine: Machine { cores: usize::MAX, ..Machine::default() },
        hand_off_nanoseconds: heist.to_vec(),
        rounds: usize::MAX,
        ..Record::default()
    }
}

/// Returns a trace with the largest possible numbers.
fn endless() -> Traced {
    const MOST: u64 = u64::MAX;
    let lane = |victim| Lane {
        tasks: MOST,
        lost: MOST,
        busy: vec![(0, MOST), (MOST, 0)],
        asleep: vec![(MOST, MOST)],
        steals: vec![(MOST, victim, usize::MAX), (0, usize::MAX, 0)],
        totals: Some(Totals { busy: MOST, asleep: MOST, steals: vec![(victim, MOST, MOST); 2] }),
        ..Lane::default()
    };
    Traced {
        workers: usize::MAX,
        nanoseconds: MOST,
        lanes: vec![lane(1), lane(0)],
        task_times: vec![(0, MOST), (MOST, MOST)],
        ..Traced::default()
    }
}

#[test]
fn no_number_breaks_a_page() {
    let latencies = |buckets: &[(u64, u64)]| Latencies {
        by: "heist".into(),
        buckets: buckets.to_vec(),
        ..Latencies::default()
    };
    let most = latencies(&[(1, u64::MAX), (u64::MAX, u64::MAX)]);
    let without_totals = Lane { totals: None, ..endless().lanes[0].clone() };
    let mut twice = samples(&[1, 2], &[1.0], &[1.0]);
    twice.samples.iter_mut().for_each(|series| series.workers = Some(1));
    let records = [
        samples(&[1, 2], &[-5.0, -1e300], &[-1.0]),
        samples(&[1, 2], &[1e306; 7], &[1e-306; 7]),
        samples(&[1, 2], &[1e15; 7], &[1e-6; 7]),
        samples(&[1, 2], &[1.0, -1.0], &[0.0]),
        samples(&[1, 2], &[f64::NAN], &[f64::INFINITY]),
        samples(&[0, 1], &[1.0; 7], &[2.0; 7]),
        samples(&[1, 1 << 63, usize::MAX], &[1.0; 7], &[2.0; 7]),
        samples(&[1], &[1.0], &[1.0]),
        twice,
        Record { latencies: vec![most, latencies(&[(5, 1)])], ..Record::default() },
        Record { traces: vec![endless()], ..Record::default() },
        Record {
            traces: vec![Traced { lanes: vec![without_totals; 14], ..endless() }],
            ..Record::default()
        },
    ];
    for (place, record) in records.iter().enumerate() {
        let page = page(record);
        for attribute in attributes(&page) {
            for broken in ["NaN", "inf", "undefined"] {
                assert!(!attribute.contains(broken), "{place}: {attribute}");
            }
        }
    }
}

#[test]
fn large_records_make_small_pages() {
    let series = |number: usize| Series {
        workload: format!("workload {}", number / 40),
        case: format!("case {}", number / 4),
        by: format!("pool {}", number % 4),
        values: [("nanoseconds".into(), (1..=101).map(f64::from).collect())].into(),
        ..Series::default()
    };
    let slices =
        |first: u64| (0..2_000).map(|at| (first + at * 1_000, first + at * 1_000 + 400)).collect();
    let lane = || Lane {
        busy: slices(0),
        asleep: slices(500),
        steals: (0..2_000).map(|at| (at * 1_000, at as usize % 8, 1)).collect(),
        ..Lane::default()
    };
    let traced = || Traced {
        workers: 8,
        lanes: (0..8).map(|_| lane()).collect(),
        task_times: (1..2_000).map(|upper| (upper * 10, upper)).collect(),
        ..Traced::default()
    };
    let record = Record {
        samples: (0..200).map(series).collect(),
        traces: (0..20).map(|_| traced()).collect(),
        ..Record::default()
    };
    let size = page(&record).len();
    assert!(size < 3_000_000, "{size} bytes");
}

/// The page must work from the file system, without a network.
#[test]
fn the_page_loads_nothing() {
    let page = page(&read("tests/data/made-up.json"));
    // The other match is the name of a format, in the icon.
    assert_eq!(page.matches("http").count(), 2, "a namespace, and http-equiv");
    assert_eq!(page.matches(" src=").count(), 0);
    assert!(!page.contains("@import") && !page.contains("url("));
}
