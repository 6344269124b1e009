//! Runs the two builds of every case in interleaved pairs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::machine::{self, Build, locked_version};
use harness::record::{Record, Series};

use crate::args::Run;
use crate::cases::{self, Case, SMALL};
use crate::process::{self, Cost};
use crate::report;

/// The names of the two builds, in records and as directories.
pub(crate) const STOCK: &str = "stock";
pub(crate) const HEIST: &str = "heist";

/// The names of the values in records.
pub(crate) const WALL: &str = "nanoseconds";
pub(crate) const CPU: &str = "process_cpu_nanoseconds";
pub(crate) const MEMORY: &str = "peak_bytes";

const SCRIPT: &str = "bench/programs.sh";

/// The lock file of the small programs, which has the versions of the libraries that they show.
const LOCK: &str = include_str!("../../small/Cargo.lock");

/// Returns the cases of a command.
fn selected(args: &Run) -> Result<Vec<Case>, String> {
    if args.check && args.names.is_empty() {
        return cases::selected(&["b3sum/small".into()]);
    }
    cases::selected(&args.names)
}

/// Returns the packages to build, one to a line: those of tools with their version, and [`SMALL`].
pub(crate) fn needs(args: &Run) -> Result<String, String> {
    if args.table.is_some() {
        return Ok(String::new());
    }
    let mut packages: Vec<&str> = selected(args)?.iter().map(|case| case.package).collect();
    packages.dedup();
    Ok(packages.iter().map(|package| format!("{package}\n")).collect())
}

/// Measures, writes the record, and returns the table. An error is a message that says what to do.
pub(crate) fn run(args: &Run) -> Result<String, String> {
    if let Some(file) = &args.table {
        return Ok(report::markdown(&read(file)?));
    }
    let cases = selected(args)?;
    // Read before the measurement, because the sources may change meanwhile.
    let mut record = about(args);
    if let Some(file) = args.json.as_ref().filter(|file| file.exists()) {
        record = continued(record, file)?;
    }
    for case in &cases {
        eprintln!("{}: {}", case.id, case.title);
        let both = Both::new(case, args)?;
        both.check()?;
        if args.check {
            continue;
        }
        let costs = both.pairs(args.pairs.get())?;
        record.samples.retain(|series| series.case != case.id);
        record
            .samples
            .extend([STOCK, HEIST].iter().zip(costs).map(|(by, costs)| series(case, by, &costs)));
        if let Some(file) = &args.json {
            write(&record, file)?;
        }
    }
    if args.check {
        return Ok(format!("{} cases: both builds print the same\n", cases.len()));
    }
    Ok(report::markdown(&record))
}

/// The two builds of the program of a case.
struct Both<'c> {
    case: &'c Case,
    work: &'c Path,
    arguments: Vec<PathBuf>,
}

impl<'c> Both<'c> {
    fn new(case: &'c Case, args: &'c Run) -> Result<Self, String> {
        let inputs = args.work.join("input");
        let explain = |error| {
            format!("cannot make the input of {} in {} ({error})", case.id, inputs.display())
        };
        case.input.iter().try_for_each(|input| input.make(&inputs)).map_err(explain)?;
        let arguments = case.arguments(&inputs).map_err(explain)?;
        Ok(Self { case, work: &args.work, arguments })
    }

    fn run(&self, by: &str, pools: Option<&Path>) -> Result<Cost, String> {
        let program = self.work.join("bin").join(by).join(self.case.program());
        process::run(&program, &self.arguments, &self.output(by), pools)
    }

    fn output(&self, by: &str) -> PathBuf {
        self.work.join(format!("output-{by}"))
    }

    /// Runs both once, and verifies that only one has our rayon-core and that they print the same. This also brings the input
    /// into the file cache.
    fn check(&self) -> Result<(), String> {
        for by in [STOCK, HEIST] {
            let pools = self.work.join("pools");
            File::create(&pools)
                .map_err(|error| format!("cannot write {} ({error})", pools.display()))?;
            self.run(by, Some(&pools))?;
            let has_ours = fs::metadata(&pools).is_ok_and(|found| found.len() > 0);
            if has_ours != (by == HEIST) {
                let program = self.case.program();
                return Err(format!(
                    "{program} in bin/{by} has the wrong rayon-core; remove target/programs"
                ));
            }
        }
        self.same()
    }

    /// Compares what the two printed last.
    fn same(&self) -> Result<(), String> {
        let sum = |by| {
            let file = self.output(by);
            process::checksum(&file, self.case.output)
                .map_err(|error| format!("cannot read {} ({error})", file.display()))
        };
        if sum(STOCK)? != sum(HEIST)? {
            let (stock, heist) = (self.output(STOCK), self.output(HEIST));
            let id = self.case.id;
            return Err(format!(
                "{id}: the outputs differ: compare {} and {}",
                stock.display(),
                heist.display()
            ));
        }
        Ok(())
    }

    /// Runs pairs, each in another order than the one before.
    fn pairs(&self, count: usize) -> Result<[Vec<Cost>; 2], String> {
        let mut costs = [const { Vec::new() }; 2];
        for pair in 0..count {
            let first = pair % 2;
            for which in [first, 1 - first] {
                costs[which].push(self.run([STOCK, HEIST][which], None)?);
            }
            self.same()?;
        }
        Ok(costs)
    }
}

fn series(case: &Case, by: &str, costs: &[Cost]) -> Series {
    let values = |value: fn(&Cost) -> f64| costs.iter().map(value).collect::<Vec<_>>();
    Series {
        workload: "programs".into(),
        case: case.id.into(),
        title: case.title.into(),
        by: by.into(),
        values: [
            (WALL.into(), values(|cost| cost.wall.as_nanos() as f64)),
            (CPU.into(), values(|cost| cost.cpu.as_nanos() as f64)),
            (MEMORY.into(), values(|cost| cost.memory as f64)),
        ]
        .into(),
        ..Series::default()
    }
}

/// Returns a record without samples.
fn about(args: &Run) -> Record {
    let git = ["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty", "--abbrev=12"];
    let tools = cases::all().into_iter().filter(|case| case.package != SMALL);
    let tools = tools.filter_map(|case| case.package.split_once('='));
    let libraries = ["bvh", "kd-tree", "ndarray", "rapier3d", "rayon-core"];
    let libraries = libraries.map(|name| (name, locked_version(LOCK, name).unwrap_or_default()));
    let peers = tools.map(|(name, version)| (name.into(), version.into()));
    let build = Build {
        rustc: output("rustc", &["-V"]),
        commit: output("git", &git),
        peers: peers.chain(libraries.map(|(name, version)| (name.into(), version))).collect(),
    };
    let rounds = args.pairs.get();
    Record {
        script: Some(SCRIPT.into()),
        rounds,
        complete: Some(true),
        unit: "a value a pair, of a whole process".into(),
        arguments: given(args),
        ..machine::look(build)
    }
}

/// Returns what was given to the script, without the names: a file may have the cases of several runs.
fn given(args: &Run) -> Vec<String> {
    ["--pairs".into(), args.pairs.to_string()].into()
}

/// Returns the record with what an earlier run has written to a file.
fn continued(record: Record, file: &Path) -> Result<Record, String> {
    let earlier = read(file)?;
    let of = |record: &Record| (record.rounds, record.machine.clone(), record.commit.clone());
    if of(&earlier) != of(&record) {
        let file = file.display();
        return Err(format!("{file} is of another machine, commit or number of pairs; remove it"));
    }
    Ok(Record { samples: earlier.samples, ..record })
}

fn read(file: &Path) -> Result<Record, String> {
    let explain = |error: String| format!("cannot read {} ({error})", file.display());
    let text = fs::read(file).map_err(|error| explain(error.to_string()))?;
    let record: Record =
        serde_json::from_slice(&text).map_err(|error| explain(error.to_string()))?;
    match record.script.as_deref() {
        Some(SCRIPT) => Ok(record),
        _ => Err(explain(format!("it is not a record of {SCRIPT}"))),
    }
}

fn write(record: &Record, file: &Path) -> Result<(), String> {
    File::create(file).and_then(|out| record.write(out)).map_err(|error| {
        format!("the samples could not be written to {} ({error})", file.display())
    })
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).trim().into(),
    )
}
