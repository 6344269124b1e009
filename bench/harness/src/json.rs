//! Makes a record from what was measured, and JSON from a record.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;

use crate::histogram::buckets;
use crate::lines::Lines;
use crate::metric::round;
use crate::record::{Latencies, Record, Series};
use crate::row::{Entry, Row};

/// Makes the record of a run.
pub(crate) fn record(about: &Record, hand_offs: &[f64], rows: &[Row]) -> Record {
    Record {
        rounds: hand_offs.len(),
        hand_off_nanoseconds: hand_offs.iter().map(|&value| round(value, 1)).collect(),
        unit: "a value a round; plain nanoseconds are per operation".into(),
        samples: rows
            .iter()
            .flat_map(|row| row.entries.iter().map(move |entry| series(row, entry)))
            .collect(),
        latencies: rows
            .iter()
            .flat_map(|row| row.entries.iter().filter_map(move |entry| latencies(row, entry)))
            .collect(),
        ..about.clone()
    }
}

/// Returns the waiting times of an entry, or `None` if the case does not measure them.
fn latencies(row: &Row, entry: &Entry) -> Option<Latencies> {
    let answers = entry.samples.iter().flat_map(|sample| &sample.answers);
    let buckets = buckets(answers.map(|&time| time as u64));
    if buckets.is_empty() {
        return None;
    }
    Some(Latencies { case: row.id(), by: entry.name.into(), buckets })
}

fn series(row: &Row, entry: &Entry) -> Series {
    let values = row.metrics.iter().enumerate().map(|(place, metric)| {
        let values = entry.values(place).map(|value| round(value, metric.digits.1));
        (metric.key.to_owned(), values.collect())
    });
    Series {
        workload: row.workload.into(),
        item: row.item.map(|item| item.id().into()),
        case: row.case.clone(),
        title: row.title.clone(),
        workers: row.workers,
        by: entry.name.into(),
        sequential: entry.sequential,
        disturbed: entry.disturbed(),
        runs: runs(entry, row.metrics[0].digits.1),
        values: values.collect::<BTreeMap<_, _>>(),
    }
}

/// Returns the runs behind each round's value; none where each round was one run.
fn runs(entry: &Entry, digits: usize) -> Vec<Vec<f64>> {
    if entry.samples.iter().all(|sample| sample.runs.is_empty()) {
        return Vec::new();
    }
    let rounded = |runs: &Vec<f64>| runs.iter().map(|&value| round(value, digits)).collect();
    entry.samples.iter().map(|sample| rounded(&sample.runs)).collect()
}

impl Record {
    /// Writes the record as JSON with one line for every series, which [`serde_json`] reads.
    ///
    /// # Errors
    ///
    /// Returns the errors of the writer.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        Ok(self.serialize(&mut Serializer::with_formatter(out, Lines::default()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Lane, Machine, Totals, Traced};
    use crate::row::tests::row;

    fn text(record: &Record) -> String {
        let mut out = Vec::new();
        record.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_series_is_a_line() {
        let text = text(&record(
            &Record::default(),
            &[30.04],
            &[row("inside/1", &[("heist", [1.0, 2.00049, 3.0])])],
        ));
        let expected = "\n    {\"workload\":\"spawn\",\"case\":\"inside/1\",\"title\":\"title of inside/1\",\"by\":\"heist\",\
             \"disturbed\":0,\"nanoseconds\":[1.0,2.0,3.0]}\n  ],";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("\"hand_off_nanoseconds\": [30.0]"), "{text}");
    }

    #[test]
    fn a_field_is_a_line() {
        let samples = ["a", "b"].map(|by| Series { by: by.into(), ..Series::default() }).into();
        let traced = Traced { lanes: vec![Lane::default()], ..Traced::default() };
        let arguments = vec!["bench".into(), "fib".into()];
        let record = Record { arguments, samples, traces: vec![traced], ..Record::default() };
        let expected = r#"{
  "arguments": ["bench","fib"],
  "machine": {"cpu":"","cores":0,"kernel":"","rustc":""},
  "commit": "",
  "peers": {},
  "rounds": 0,
  "hand_off_nanoseconds": [],
  "unit": "",
  "samples": [
    {"workload":"","case":"","by":"a","disturbed":0},
    {"workload":"","case":"","by":"b","disturbed":0}
  ],
  "latencies": [],
  "traces": [
    {"case":"","by":"","workers":0,"nanoseconds":0,"lanes":[{"name":"","tasks":0,"lost":0,"busy":[],"asleep":[],"steals":[]}],"task_times":[]}
  ]
}
"#;
        assert_eq!(text(&record), expected);
    }

    #[test]
    fn an_entry_without_workers_is_marked_sequential() {
        let mut row = row("inside/1", &[("heist", [1.0; 3]), ("plain", [1.0; 3])]);
        row.entries[1].sequential = true;
        let text = text(&record(&Record::default(), &[30.04], &[row]));
        assert!(text.contains("\"by\":\"plain\",\"sequential\":true,\"disturbed\":0"), "{text}");
        assert_eq!(text.matches("sequential").count(), 1, "{text}");
    }

    #[test]
    fn a_written_record_can_be_read() {
        let totals = Totals { busy: 5, asleep: 4, steals: vec![(0, 1, 2)] };
        let lane = Lane { name: "w0".into(), totals: Some(totals), ..Lane::default() };
        let record = Record {
            version: Some(2),
            arguments: vec!["bench".into(), "a \"b\" \\ c\n".into()],
            script: Some("run.sh".into()),
            by_cargo: true,
            machine: Machine { cpu: "µ".into(), cores: 2, ..Machine::default() },
            commit: "abc".into(),
            peers: [("rayon".into(), "1".into())].into(),
            optimized: Some(true),
            rounds: 2,
            complete: Some(false),
            hand_off_nanoseconds: vec![1.5, 2.0],
            unit: "ns".into(),
            samples: vec![Series {
                item: Some("u64".into()),
                workers: Some(2),
                sequential: true,
                runs: vec![vec![1.0, 1.25, 9.0]],
                values: [("nanoseconds".into(), vec![1.25])].into(),
                ..Series::default()
            }],
            latencies: vec![Latencies {
                by: "heist".into(),
                buckets: vec![(1, 2)],
                ..Latencies::default()
            }],
            traces: vec![Traced { lanes: vec![lane], ..Traced::default() }],
        };
        assert_eq!(serde_json::from_str::<Record>(&text(&record)).unwrap(), record);
    }

    #[test]
    fn a_record_that_is_read_is_written_unchanged() {
        for recorded in [
            include_str!("../../record/duel.json"),
            include_str!("../../record/fork.json"),
            include_str!("../../record/pool.json"),
            include_str!("../../record/rayon.json"),
            include_str!("../../record/trace-off.json"),
        ] {
            let record: Record = serde_json::from_str(recorded).unwrap();
            assert!(text(&record) == recorded);
        }
    }

    #[test]
    fn recorded_runs_can_be_read() {
        let files = [
            (include_str!("../../record/duel.json"), "duel", "rayon"),
            (include_str!("../../record/fork.json"), "fib", "plain"),
            (include_str!("../../record/pool.json"), "spawn", "heist"),
            (include_str!("../../record/deque.json"), "deque", "crossbeam"),
            (include_str!("../../record/pipeline.json"), "pipeline", "heist-pull"),
            (include_str!("../../record/rayon.json"), "rayon", "stock"),
            (include_str!("../../record/trace-off.json"), "revisions", "before"),
        ];
        for (text, workload, by) in files {
            let record: Record = serde_json::from_str(text).unwrap();
            let series = record.samples.iter().find(|series| series.by == by).unwrap();
            assert_eq!(series.workload, workload);
            assert_eq!(series.values["nanoseconds"].len(), record.rounds);
        }
    }
}
