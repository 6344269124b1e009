//! What a change costs that should cost nothing: `fib` with a join at every call, on two revisions of heist in one process.
//!
//! Both are measured in turn, round by round, so that whatever happens to the machine happens to both; and in many processes, as each has its
//! own luck with the addresses of its stacks. See `run.sh`.

#[path = "../rayon/src/json.rs"]
#[allow(dead_code, reason = "shared; this program reads none")]
mod json;
#[path = "../rayon/src/machine.rs"]
mod machine;
#[path = "../src/stats.rs"]
#[allow(dead_code, reason = "shared; not all of it is needed here")]
mod stats;

use std::env;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

const N: u64 = 36;
const RESULT: u64 = 14_930_352;
/// As many as there are calls with an argument above 1: one less than the number that follows.
const JOINS: f64 = 24_157_816.0;
const WORKERS: [usize; 2] = [1, 2];

/// The same program on each revision; a macro, because a generic one would not be the same program.
macro_rules! revision {
    ($heist:ident) => {
        mod $heist {
            pub(crate) fn fib(n: u64) -> u64 {
                if n < 2 {
                    return n;
                }
                let (a, b) = ::$heist::join(move || fib(n - 1), move || fib(n - 2));
                a + b
            }

            /// Nanoseconds for each join.
            pub(crate) fn measure(pool: &::$heist::Pool) -> f64 {
                let begun = super::Instant::now();
                let result = pool.install(|| fib(super::black_box(super::N)));
                let took = begun.elapsed();
                assert_eq!(result, super::RESULT, "a wrong result");
                took.as_secs_f64() * 1e9 / super::JOINS
            }
        }
    };
}

revision!(before);
revision!(after);

/// Of a process: before and after, for each round.
type Rounds = Vec<(f64, f64)>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["one", workers, rounds] => {
            for (before, after) in in_turn(workers.parse()?, rounds.parse()?)? {
                println!("{before:.4} {after:.4}");
            }
            Ok(())
        }
        ["all", processes, rounds, ref rest @ ..] => all(processes.parse()?, rounds, rest),
        _ => Err("use run.sh".into()),
    }
}

/// In this process.
fn in_turn(workers: usize, rounds: usize) -> Result<Rounds, Box<dyn Error>> {
    let first = ::before::Pool::builder().workers(workers).build()?;
    let second = ::after::Pool::builder().workers(workers).build()?;
    let round = |round: usize| {
        if round.is_multiple_of(2) {
            let found = before::measure(&first);
            (found, after::measure(&second))
        } else {
            let found = after::measure(&second);
            (before::measure(&first), found)
        }
    };
    // One to warm up.
    Ok((0..=rounds).map(round).skip(1).collect())
}

/// In processes of their own, and what they say together.
fn all(processes: usize, rounds: &str, rest: &[&str]) -> Result<(), Box<dyn Error>> {
    let &[before, after, command, ref file @ ..] = rest else { return Err("use run.sh".into()) };
    let mut found = WORKERS.map(|_| Vec::new());
    for process in 1..=processes {
        eprintln!("process {process} of {processes}");
        for (workers, found) in WORKERS.into_iter().zip(&mut found) {
            found.push(in_a_process(workers, rounds)?);
        }
    }
    println!(
        "fib({N}), a join at every call: ns a join, the median of {processes} processes' medians of {rounds} rounds\n"
    );
    println!(
        "| workers | before ({before}) | after ({after}) | after / before, in the rounds of a process | {} |",
        stats::ends_of(processes)
    );
    println!("|---|---:|---:|---:|---:|");
    for (workers, found) in WORKERS.into_iter().zip(&found) {
        let middle = |each: fn(&(f64, f64)) -> f64| {
            stats::interval(
                found.iter().map(|rounds| stats::interval(rounds.iter().map(each)).median),
            )
        };
        let (first, second, ratio) =
            (middle(|pair| pair.0), middle(|pair| pair.1), middle(|pair| pair.1 / pair.0));
        println!(
            "| {workers} | {:.2} | {:.2} | {:.3} | {:.3}–{:.3} |",
            first.median, second.median, ratio.median, ratio.low, ratio.high
        );
    }
    if let [file] = file {
        fs::write(file, record(&found, [before, after, command]))?;
    }
    Ok(())
}

fn in_a_process(workers: usize, rounds: &str) -> Result<Rounds, Box<dyn Error>> {
    let output =
        Command::new(env::current_exe()?).args(["one", &workers.to_string(), rounds]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let pair = |line: &str| {
        let (before, after) = line.split_once(' ').ok_or("two numbers a line")?;
        Ok((before.parse()?, after.parse()?))
    };
    String::from_utf8(output.stdout)?.lines().map(pair).collect()
}

fn record(found: &[Vec<Rounds>; 2], [before, after, command]: [&str; 3]) -> String {
    let machine = machine::look().into_iter().filter(|(name, _)| *name != "commit");
    let machine =
        machine.map(|(name, value)| format!("{}: {}", json::text(name), json::text(&value)));
    let pair = |&(before, after): &(f64, f64)| format!("[{before:.4}, {after:.4}]");
    let process = |rounds: &Rounds| format!("\n    {}", json::list(rounds.iter().map(pair)));
    let samples = WORKERS.iter().zip(found).map(|(workers, processes)| {
        format!("\n  \"{workers} workers\": {}", json::list(processes.iter().map(process)))
    });
    format!(
        "{{\n  \"what\": \"ns a join in fib({N}): for each process, before and after in each round\",\n  \"command\": {},\n  \"machine\": {{{}}},\n  \
         \"before\": {},\n  \"after\": {},{}\n}}\n",
        json::text(command),
        machine.collect::<Vec<_>>().join(", "),
        json::text(before),
        json::text(after),
        samples.collect::<Vec<_>>().join(",")
    )
}
