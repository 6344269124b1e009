//! The options of `heist sim`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueHint;
use heist_sim_workloads::{Strategy, UnknownName, Workload};

/// The numbers of cores that a range is expanded to, apart from its ends.
const STEPS: [usize; 10] = [1, 2, 4, 8, 16, 24, 32, 64, 128, 256];
/// The largest number of virtual cores with a worker.
const MOST_CORES: usize = 256;
/// The longest span in microseconds. On 256 cores, its simulation takes minutes.
const LONGEST_SPAN: u64 = 100_000;
/// The largest number of seeds.
const MOST_SEEDS: u64 = 1_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Sim {
    /// Numbers of virtual cores: a range such as `1..256`, or a list such as `1,24,64` [default: 1..64]
    #[arg(long, value_name = "CORES", allow_hyphen_values = true, value_parser = cores, value_hint = ValueHint::Other)]
    pub(crate) cores: Option<Cores>,
    /// Workloads: spawn, join, scope, outside, loop, pipe, sort, a list of them, or `all`
    #[arg(long, value_name = "LIST", default_value = "join", value_parser = workloads, value_hint = ValueHint::Other)]
    pub(crate) workload: List<Workload>,
    /// Strategies: work-stealing, locked-deques, global-queue, a list of them, or `all`
    #[arg(long, value_name = "LIST", default_value = "work-stealing", value_parser = strategies, value_hint = ValueHint::Other)]
    pub(crate) strategy: List<Strategy>,
    /// Machine: `generic`, `here`, the name of a machine, or a file that describes one
    #[arg(long, value_name = "MACHINE", default_value = "generic", value_hint = ValueHint::FilePath)]
    pub(crate) machine: String,
    /// Number of seeds; everything is simulated once with each
    #[arg(long, value_name = "N", default_value_t = 3, allow_hyphen_values = true, value_parser = seeds, value_hint = ValueHint::Other)]
    pub(crate) seeds: u64,
    /// First seed
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = super::seed, value_hint = ValueHint::Other)]
    pub(crate) seed: u64,
    /// Work for each core, in microseconds of virtual time
    #[arg(long, value_name = "US", default_value_t = 4_000, allow_hyphen_values = true, value_parser = span, value_hint = ValueHint::Other)]
    pub(crate) span: u64,
    /// Write every point to this file. With `-`, points go to stdout and tables to stderr
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
}

/// Numbers of cores, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores(pub(crate) Vec<usize>);

/// Values that were given with commas, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl Cores {
    /// Returns the steps from 1 to this number, and the number itself.
    pub(crate) fn up_to(last: usize) -> Self {
        Self::between(1, last)
    }

    fn between(first: usize, last: usize) -> Self {
        let steps = STEPS.into_iter().filter(|step| (first..last).contains(step) && *step > first);
        let mut all: Vec<usize> = [first].into_iter().chain(steps).chain([last]).collect();
        all.dedup();
        Self(all)
    }
}

fn cores(text: &str) -> Result<Cores, String> {
    if let Some((first, last)) = text.split_once("..") {
        let (first, last) = (core(first)?, core(last.strip_prefix('=').unwrap_or(last))?);
        if first > last {
            return Err(format!(
                "the range is empty; write the smaller number first: {last}..{first}"
            ));
        }
        return Ok(Cores::between(first, last));
    }
    let mut all = text.split(',').map(core).collect::<Result<Vec<usize>, String>>()?;
    all.sort_unstable();
    all.dedup();
    Ok(Cores(all))
}

fn core(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_CORES).contains(number));
    number.ok_or_else(|| {
        format!("use whole numbers from 1 to {MOST_CORES}: a range such as 1..64, or a list such as 1,24,64")
    })
}

/// `all` has no variants of the same workload.
fn workloads(text: &str) -> Result<List<Workload>, String> {
    let all = Workload::ALL.iter().copied();
    let all = all.filter(|one| !matches!(one, Workload::OutsideFar | Workload::PipeOrdered));
    list(text, all.collect())
}

fn strategies(text: &str) -> Result<List<Strategy>, String> {
    list(text, Strategy::ALL.to_vec())
}

fn list<T>(text: &str, all: Vec<T>) -> Result<List<T>, String>
where
    T: FromStr<Err = UnknownName> + PartialEq,
{
    if text == "all" {
        return Ok(List(all));
    }
    let mut named = Vec::new();
    for name in text.split(',') {
        let value = name.parse().map_err(|error: UnknownName| format!("{error}, or all"))?;
        if !named.contains(&value) {
            named.push(value);
        }
    }
    Ok(List(named))
}

fn seeds(text: &str) -> Result<u64, String> {
    limited(text, 1, MOST_SEEDS)
}

fn span(text: &str) -> Result<u64, String> {
    limited(text, 10, LONGEST_SPAN)
}

fn limited(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("use a whole number from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_ends_and_the_steps_between() {
        let of = |text| cores(text).unwrap().0;
        assert_eq!(of("1..256"), STEPS);
        assert_eq!(of("1..=8"), [1, 2, 4, 8]);
        assert_eq!(of("3..40"), [3, 4, 8, 16, 24, 32, 40]);
        assert_eq!(of("5..5"), [5]);
        assert_eq!(Cores::up_to(2).0, [1, 2]);
    }

    #[test]
    fn a_list_is_sorted() {
        assert_eq!(cores("64,1,24,1").unwrap().0, [1, 24, 64]);
        for wrong in ["", "0", "1..257", "8..2", "1,,2", "-1", "1..", "many"] {
            assert!(cores(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_those_of_the_simulator() {
        assert_eq!(workloads("sort,join,sort").unwrap().0, [Workload::Sort, Workload::Join]);
        assert_eq!(workloads("all").unwrap().0.len(), 7);
        assert_eq!(strategies("all").unwrap().0, Strategy::ALL);
        let error = strategies("fifo").unwrap_err();
        assert!(error.contains("global-queue") && error.ends_with("or all"), "{error}");
    }

    #[test]
    fn numbers_are_limited() {
        assert_eq!(seeds("5"), Ok(5));
        assert!(seeds("0").is_err() && span("9").is_err() && span("1e3").is_err());
    }
}
