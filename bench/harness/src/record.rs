//! The record of a run: every sample, with the machine, the commit and the command.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

/// The version of the records that this program writes. Adding fields does not change the version.
pub const VERSION: u64 = 2;

/// The record of one run. Files of older versions have fewer fields; files of newer versions may have more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// See [`VERSION`]. The first version did not have this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The arguments that followed the program's name. An absolute path is reduced to its file name.
    pub arguments: Vec<String>,
    /// The script that started the program, if it was not the command `heist`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Whether cargo started the program, so that it need not be installed. Older files do not have this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_cargo: bool,
    /// The machine on which it ran.
    pub machine: Machine,
    /// The commit of the sources that the program was built from, with `-dirty` if they had changes. Empty if
    /// unknown.
    pub commit: String,
    /// Whether the program was built with optimization. Older files do not have this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimized: Option<bool>,
    /// The names and versions of the peers that could take part.
    pub peers: BTreeMap<String, String>,
    /// The number of rounds.
    pub rounds: usize,
    /// Whether the run ended by itself, with everything measured. Older files do not have this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    /// The time of a cache line from processor to processor, one value for each round.
    pub hand_off_nanoseconds: Vec<f64>,
    /// The meaning of the values, in words.
    #[serde(default)]
    pub unit: String,
    /// One series for each entry of each case.
    pub samples: Vec<Series>,
    /// The waiting times of a thread outside the pool, for the cases that measure them.
    #[serde(default)]
    pub latencies: Vec<Latencies>,
    /// What the workers did in one additional, unmeasured run.
    #[serde(default)]
    pub traces: Vec<Traced>,
}

impl Record {
    /// Returns the command that starts the program again.
    pub fn program(&self) -> &'static str {
        if self.by_cargo { "cargo run --release --" } else { "heist" }
    }

    /// Returns the reasons not to trust the record that it states itself. Each completes a sentence about the file,
    /// for example `is of a run that was cut short`.
    pub fn caveats(&self) -> Vec<&'static str> {
        let newer = self.version > Some(VERSION);
        let debug = self.optimized == Some(false);
        let cut_short = self.complete == Some(false);
        let mut lists = self.samples.iter().flat_map(|series| series.values.values());
        let odd = lists.any(|values| !values.is_empty() && !usable(values));
        [
            newer.then_some("was written by a newer heist, whose fields may have another meaning"),
            debug.then_some("is of a debug build, whose times say nothing"),
            cut_short.then_some("is of a run that was cut short"),
            odd.then_some("has impossible values; their series are left out"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// What is known of the machine. Unknown fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor model.
    pub cpu: String,
    /// The number of processors that the process may use.
    pub cores: usize,
    /// The version of the kernel.
    pub kernel: String,
    /// The version of the compiler that built the program.
    pub rustc: String,
}

/// Everything that was measured of one entry in one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The family of the case.
    pub workload: String,
    /// The type of the items that go through a queue; none for a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The name of the case within its family.
    pub case: String,
    /// The case in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The number of workers of a pool, if cases differ by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<usize>,
    /// The name of the entry.
    #[serde(alias = "queue", alias = "pool")]
    pub by: String,
    /// Whether the entry runs on one thread, whatever the number of workers. Older files do not have this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
    /// The number of disturbed samples.
    #[serde(default)]
    pub disturbed: usize,
    /// All runs of each round, if a round is a process with many runs and its value is their median. Empty for
    /// other series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Vec<f64>>,
    /// The values by the key of the metric, one for each round. `nanoseconds` are per operation.
    #[serde(flatten, deserialize_with = "lists")]
    pub values: BTreeMap<String, Vec<f64>>,
}

impl Series {
    /// Returns the name by which the case is selected, for example `duel/skewed/2`.
    pub fn id(&self) -> String {
        let item = self.item.iter().map(|item| format!("{item}/")).collect::<String>();
        format!("{}/{item}{}", self.workload, self.case)
    }

    /// Returns the values that are [`usable`].
    pub fn measured(&self) -> impl Iterator<Item = (&str, &[f64])> {
        let lists = self.values.iter().map(|(key, values)| (key.as_str(), values.as_slice()));
        lists.filter(|(_, values)| usable(values))
    }
}

/// Reads the fields that are lists of numbers. A newer version may add other fields, which are ignored.
fn lists<'de, D: Deserializer<'de>>(fields: D) -> Result<BTreeMap<String, Vec<f64>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Field {
        Values(Vec<f64>),
        Other(IgnoredAny),
    }
    let values = |(key, field)| match field {
        Field::Values(values) => Some((key, values)),
        Field::Other(IgnoredAny) => None,
    };
    let fields = BTreeMap::<String, Field>::deserialize(fields)?;
    Ok(fields.into_iter().filter_map(values).collect())
}

/// Returns whether a file states a newer [`VERSION`], whatever else it contains.
pub fn is_newer(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        version: u64,
    }
    serde_json::from_slice::<Head>(json).is_ok_and(|head| head.version > VERSION)
}

/// Returns whether there are values and all of them could have been measured. A file may contain any number, but a
/// negative number is neither a time nor a count, and numbers such as 1e300 would become infinities on a page.
pub fn usable(values: &[f64]) -> bool {
    // In nanoseconds, the range is from a millionth of one to eleven days.
    let measured = |value: &f64| *value == 0.0 || (1e-6..=1e15).contains(value);
    !values.is_empty() && values.iter().all(measured)
}

/// A histogram of waiting times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// The name of the case.
    #[serde(default)]
    pub case: String,
    /// The entry that answered.
    pub by: String,
    /// The upper ends of the buckets, in nanoseconds, and how many answers each holds.
    pub buckets: Vec<(u64, u64)>,
}

/// What the threads of a pool did: the summary of a trace, thinned out if the trace is long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// The name of the case: `duel/skewed/2`.
    pub case: String,
    /// The entry whose pool it was.
    pub by: String,
    /// The number of workers of the pool.
    pub workers: usize,
    /// The time from the first event shown to the last. All times below are relative to the first one.
    pub nanoseconds: u64,
    /// The threads.
    pub lanes: Vec<Lane>,
    /// The upper ends of buckets, in nanoseconds, and how many tasks each holds.
    pub task_times: Vec<(u64, u64)>,
}

/// A thread of a pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The name of the thread.
    pub name: String,
    /// The tasks that ended on the thread in the time shown. In files without `totals`: all that the trace has
    /// kept.
    pub tasks: u64,
    /// The number of events that were overwritten by newer ones.
    pub lost: u64,
    /// The spans in which it ran tasks, from and to. Neighbouring spans with no visible gap are merged.
    pub busy: Vec<(u64, u64)>,
    /// The spans in which it slept, from and to.
    pub asleep: Vec<(u64, u64)>,
    /// The steals: the time, the victim (its index in the lanes) and the number of tasks. If there are very many,
    /// neighbours with the same victim are merged.
    pub steals: Vec<(u64, usize, usize)>,
    /// The totals before merging. Older files do not have this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<Totals>,
}

impl Lane {
    /// Returns the counted totals. For an older file, returns the sums of the merged pieces, which are about the
    /// same.
    pub fn totals(&self) -> Totals {
        let pieces = || Totals::of(&self.busy, &self.asleep, &self.steals);
        self.totals.clone().unwrap_or_else(pieces)
    }
}

/// The totals of a thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// The time in which it ran tasks, in nanoseconds.
    pub busy: u64,
    /// The time in which it slept, in nanoseconds.
    pub asleep: u64,
    /// The victims, with the number of steals from each and the number of tasks stolen.
    pub steals: Vec<(usize, u64, u64)>,
}

impl Totals {
    /// Adds up the pieces of a [`Lane`].
    pub fn of(busy: &[(u64, u64)], asleep: &[(u64, u64)], steals: &[(u64, usize, usize)]) -> Self {
        let sum = |pieces: &[(u64, u64)]| {
            let long = |&(from, to): &(u64, u64)| to.saturating_sub(from);
            pieces.iter().map(long).fold(0, u64::saturating_add)
        };
        let mut from: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for &(_, victim, tasks) in steals {
            let of = from.entry(victim).or_default();
            *of = (of.0 + 1, of.1.saturating_add(tasks as u64));
        }
        let steals = from.into_iter().map(|(victim, (steals, tasks))| (victim, steals, tasks));
        Self { busy: sum(busy), asleep: sum(asleep), steals: steals.collect() }
    }

    /// Returns the number of steals.
    pub fn stole(&self) -> u64 {
        self.steals.iter().map(|&(_, steals, _)| steals).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_totals_the_pieces_are_added_up() {
        let text = r#"{"name":"w","tasks":2,"lost":0,"busy":[[0,5],[7,9]],"asleep":[[5,6]],"steals":[[1,2,4],[3,2,1],[4,0,1]]}"#;
        let lane: Lane = serde_json::from_str(text).unwrap();
        let found = lane.totals();
        assert_eq!((found.busy, found.asleep, found.stole()), (7, 1, 3));
        assert_eq!(found.steals, [(0, 1, 1), (2, 2, 5)]);
        assert_eq!(serde_json::to_string(&lane).unwrap(), text);
    }

    #[test]
    fn missing_fields_are_not_caveats() {
        let of = |optimized, complete| Record { optimized, complete, ..Record::default() };
        for trusted in [of(None, None), of(Some(true), Some(true))] {
            assert_eq!(trusted.caveats(), [""; 0]);
        }
        let found = of(Some(false), Some(false)).caveats();
        assert!(found[0].contains("debug build") && found[1].contains("cut short"), "{found:?}");
    }

    #[test]
    fn impossible_values_are_not_used() {
        for values in [&[0.0][..], &[1e-3, 5e14]] {
            assert!(usable(values), "{values:?}");
        }
        for values in [&[][..], &[1.0, -1.0], &[1e306], &[1e-300], &[f64::NAN], &[f64::INFINITY]] {
            assert!(!usable(values), "{values:?}");
        }
        let with = |value| {
            let values = [("a".into(), vec![1.0, value]), ("b".into(), vec![])].into();
            let samples = vec![Series { values, ..Series::default() }];
            Record { samples, ..Record::default() }
        };
        let keys = |record: &Record| record.samples[0].measured().count();
        assert_eq!((keys(&with(2.0)), with(2.0).caveats()), (1, vec![]));
        assert_eq!((keys(&with(-2.0)), with(-2.0).caveats().len()), (0, 1));
    }

    #[test]
    fn unknown_fields_of_a_series_are_ignored() {
        let text = r#"{"workload":"w","case":"c","by":"b","warmup":3,"why":{"a":[1]},"names":["x"],"gap":[1,null],
            "nanoseconds":[1,2.5]}"#;
        let series: Series = serde_json::from_str(text).unwrap();
        assert_eq!(series.values, [("nanoseconds".into(), vec![1.0, 2.5])].into());
    }

    #[test]
    fn newer_versions_are_recognized() {
        let of = |version| Record { version, ..Record::default() };
        for version in [None, Some(1), Some(VERSION)] {
            assert_eq!(of(version).caveats(), [""; 0]);
        }
        assert!(of(Some(VERSION + 1)).caveats()[0].contains("by a newer heist"));
        assert!(is_newer(format!(r#"{{"version":{},"machine":7}}"#, VERSION + 1).as_bytes()));
        for text in [r#"{"version":1}"#, r#"{"version":"x"}"#, "{}", "[]", ""] {
            assert!(!is_newer(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn counted_totals_take_precedence() {
        let totals = Totals { busy: 3, asleep: 2, steals: vec![(0, 9, 9)] };
        let lane = Lane { busy: vec![(0, 5)], totals: Some(totals.clone()), ..Lane::default() };
        assert_eq!(lane.totals(), totals);
    }
}
