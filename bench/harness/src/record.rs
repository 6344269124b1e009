//! What a run has found, as it is kept: every sample, with the machine, the commit and the command.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

/// The version of the records that this program writes. One that only has more fields is no other version.
pub const VERSION: u64 = 2;

/// A run of the benchmark. Files of older versions have fewer fields, those of newer ones may have more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// See [`VERSION`]. The first had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// What was typed after the program's name; of absolute paths, the name of the file.
    pub arguments: Vec<String>,
    /// The script that started the program, if it was not the command `heist`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Cargo has started the program, so that it need not be installed. Older files do not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_cargo: bool,
    /// Where.
    pub machine: Machine,
    /// Of the sources that the program was built from, with `-dirty` if they had changes. Unknown is empty.
    pub commit: String,
    /// The program was built with optimization. Older files do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimized: Option<bool>,
    /// The names and versions of the peers that could take part.
    pub peers: BTreeMap<String, String>,
    /// How often everything was measured.
    pub rounds: usize,
    /// Nobody has ended the run before all of it was measured. Older files do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    /// What a cache line took from core to core, one a round.
    pub hand_off_nanoseconds: Vec<f64>,
    /// What the values are, in words.
    #[serde(default)]
    pub unit: String,
    /// One for everyone that took part in a case.
    pub samples: Vec<Series>,
    /// How long it took until a thread outside had its answer, in cases where that was asked.
    #[serde(default)]
    pub latencies: Vec<Latencies>,
    /// What the workers did in one more run, which was not measured.
    #[serde(default)]
    pub traces: Vec<Traced>,
}

impl Record {
    /// What to type to start the program again.
    pub fn program(&self) -> &'static str {
        if self.by_cargo { "cargo run --release --" } else { "heist" }
    }

    /// Why not to trust it, as far as it says so itself, each to be said of a file: `is of a run that was cut short`.
    pub fn caveats(&self) -> Vec<&'static str> {
        let newer = self.version > Some(VERSION);
        let debug = self.optimized == Some(false);
        let cut_short = self.complete == Some(false);
        let mut lists = self.samples.iter().flat_map(|series| series.values.values());
        let odd = lists.any(|values| !values.is_empty() && !usable(values));
        [
            newer.then_some("was written by a newer heist, which may mean something else by it"),
            debug.then_some("is of a debug build, whose times say nothing"),
            cut_short.then_some("is of a run that was cut short"),
            odd.then_some(
                "has values that no measurement gives, which are left out with their series",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// What the machine says of itself. Unknown is empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The model of its processors.
    pub cpu: String,
    /// How many the process may use.
    pub cores: usize,
    /// Its version.
    pub kernel: String,
    /// The version of the compiler that has built the program.
    pub rustc: String,
}

/// Everything that was measured of one queue or pool in one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The family of the case.
    pub workload: String,
    /// What goes through a queue; none for a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Which of the family.
    pub case: String,
    /// The case in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Of a pool, where cases differ by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<usize>,
    /// Who.
    #[serde(alias = "queue", alias = "pool")]
    pub by: String,
    /// It runs on one thread, whatever the number of workers. Older files do not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
    /// How many of the values were disturbed.
    #[serde(default)]
    pub disturbed: usize,
    /// Where a round is a process that ran many times, and its value the median: all of its runs. Other series have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Vec<f64>>,
    /// By the key of a metric, one value a round. `nanoseconds` are per operation.
    #[serde(flatten, deserialize_with = "lists")]
    pub values: BTreeMap<String, Vec<f64>>,
}

impl Series {
    /// The name by which the case is asked for: `duel/skewed/2`.
    pub fn id(&self) -> String {
        let item = self.item.iter().map(|item| format!("{item}/")).collect::<String>();
        format!("{}/{item}{}", self.workload, self.case)
    }

    /// The values, as far as they are [`usable`].
    pub fn measured(&self) -> impl Iterator<Item = (&str, &[f64])> {
        let lists = self.values.iter().map(|(key, values)| (key.as_str(), values.as_slice()));
        lists.filter(|(_, values)| usable(values))
    }
}

/// Fields that are lists of numbers. Others may come with a newer version, and are nothing that we could show.
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

/// Does a file say that it is of a newer [`VERSION`], whatever else is in it?
pub fn is_newer(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        version: u64,
    }
    serde_json::from_slice::<Head>(json).is_ok_and(|head| head.version > VERSION)
}

/// Are there values, and could all of them have been measured? A file may have any number, but none that is negative is a time or
/// a count, and a page of such as 1e300 has infinities.
pub fn usable(values: &[f64]) -> bool {
    // As nanoseconds: a millionth of one, and eleven days.
    let measured = |value: &f64| *value == 0.0 || (1e-6..=1e15).contains(value);
    !values.is_empty() && values.iter().all(measured)
}

/// How many answers came within which time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// The name of the case.
    #[serde(default)]
    pub case: String,
    /// Who was asked.
    pub by: String,
    /// The upper ends of the buckets, in nanoseconds, and how many answers each holds.
    pub buckets: Vec<(u64, u64)>,
}

/// What the threads of a pool did, drawn from a trace of heist's, thinned out if it was long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// The name of the case: `duel/skewed/2`.
    pub case: String,
    /// Whose pool it was.
    pub by: String,
    /// How many workers it has.
    pub workers: usize,
    /// From the first event that is shown to the last. All times below are counted from the first.
    pub nanoseconds: u64,
    /// The threads.
    pub lanes: Vec<Lane>,
    /// The upper ends of buckets, in nanoseconds, and how many tasks each holds.
    pub task_times: Vec<(u64, u64)>,
}

/// A thread of a pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// Tasks that ended on it in the time that is shown. In files without `totals`, in all that it has kept.
    pub tasks: u64,
    /// Events that were not kept, as newer ones took their place.
    pub lost: u64,
    /// When it ran tasks, from and to; neighbours that touch, or nearly so, are one.
    pub busy: Vec<(u64, u64)>,
    /// When it slept, from and to.
    pub asleep: Vec<(u64, u64)>,
    /// When it stole, from which thread (its place among the lanes), and how many tasks. Of very many, neighbours with one
    /// victim are one.
    pub steals: Vec<(u64, usize, usize)>,
    /// What all of that was before neighbours became one. Older files have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<Totals>,
}

impl Lane {
    /// Those that were counted; of an older file, what the pieces add up to, which is about as much.
    pub fn totals(&self) -> Totals {
        let pieces = || Totals::of(&self.busy, &self.asleep, &self.steals);
        self.totals.clone().unwrap_or_else(pieces)
    }
}

/// What a thread did, all in all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// For how long it ran tasks, in nanoseconds.
    pub busy: u64,
    /// For how long it slept.
    pub asleep: u64,
    /// From which thread it stole, how often, and how many tasks.
    pub steals: Vec<(usize, u64, u64)>,
}

impl Totals {
    /// Of pieces as a [`Lane`] has them.
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

    /// How often it stole.
    pub fn stole(&self) -> u64 {
        self.steals.iter().map(|&(_, steals, _)| steals).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_file_has_the_totals_of_its_pieces() {
        let text = r#"{"name":"w","tasks":2,"lost":0,"busy":[[0,5],[7,9]],"asleep":[[5,6]],"steals":[[1,2,4],[3,2,1],[4,0,1]]}"#;
        let lane: Lane = serde_json::from_str(text).unwrap();
        let found = lane.totals();
        assert_eq!((found.busy, found.asleep, found.stole()), (7, 1, 3));
        assert_eq!(found.steals, [(0, 1, 1), (2, 2, 5)]);
        assert_eq!(serde_json::to_string(&lane).unwrap(), text);
    }

    #[test]
    fn what_a_file_does_not_say_is_not_held_against_it() {
        let of = |optimized, complete| Record { optimized, complete, ..Record::default() };
        for trusted in [of(None, None), of(Some(true), Some(true))] {
            assert_eq!(trusted.caveats(), [""; 0]);
        }
        let found = of(Some(false), Some(false)).caveats();
        assert!(found[0].contains("debug build") && found[1].contains("cut short"), "{found:?}");
    }

    #[test]
    fn numbers_that_nobody_has_measured_are_not_used() {
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
    fn what_a_newer_version_adds_to_a_series_is_ignored() {
        let text = r#"{"workload":"w","case":"c","by":"b","warmup":3,"why":{"a":[1]},"names":["x"],"gap":[1,null],
            "nanoseconds":[1,2.5]}"#;
        let series: Series = serde_json::from_str(text).unwrap();
        assert_eq!(series.values, [("nanoseconds".into(), vec![1.0, 2.5])].into());
    }

    #[test]
    fn newer_versions_are_known_as_such() {
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
    fn totals_that_were_counted_are_those_of_a_lane() {
        let totals = Totals { busy: 3, asleep: 2, steals: vec![(0, 9, 9)] };
        let lane = Lane { busy: vec![(0, 5)], totals: Some(totals.clone()), ..Lane::default() };
        assert_eq!(lane.totals(), totals);
    }
}
