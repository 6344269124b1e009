//! Measures a cluster on one machine, against the same pipeline on a pool and against a bare loop on the same server.
//!
//!     cargo bench --manifest-path crates/cluster/Cargo.toml -- [compute] [wait] [slow] [large] [--rounds N]
//!
//! Every run checks its results. Without `--bench`, which cargo adds, it checks them in short runs and says nothing of times.

// It reads processor times in /proc, and addresses of the loopback interface are as Linux has them.
#![cfg(target_os = "linux")]

mod bare;
mod processes;
mod runs;

use std::error::Error;
use std::time::Duration;

use processes::{Server, Worker};
use runs::{Run, Work};

/// One measurement.
#[derive(Clone, Copy)]
struct Sample {
    wall: Duration,
    /// Of all processes: the server, the workers and this one.
    processor: Duration,
}

/// How much is measured.
struct Extent {
    rounds: usize,
    /// Batches are a tenth as many in a check.
    check: bool,
}

impl Extent {
    fn batches(&self, batches: u64) -> u64 {
        if self.check { batches / 10 } else { batches }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(work) = Work::from_environment() {
        return work.serve();
    }
    let mut words: Vec<_> = std::env::args().skip(1).collect();
    let check = !words.iter().any(|word| word == "--bench");
    words.retain(|word| word != "--bench");
    let mut rounds = if check { 1 } else { 5 };
    if let Some(at) = words.iter().position(|word| word == "--rounds") {
        rounds = words.get(at + 1).ok_or("--rounds needs a number")?.parse()?;
        words.drain(at..at + 2);
    }
    let Some(server) = Server::start()? else {
        println!("skipped: there is no nats-server; ci/cluster.sh installs one");
        return Ok(());
    };
    let extent = Extent { rounds, check };
    type Case = fn(&Server, &Extent) -> Result<(), Box<dyn Error>>;
    let cases: [(&str, Case); 4] =
        [("compute", compute), ("wait", wait), ("slow", slow), ("large", large)];
    if let Some(word) = words.iter().find(|word| cases.iter().all(|(name, _)| name != word)) {
        return Err(format!("there is no case {word}: use compute, wait, slow or large").into());
    }
    println!("| case | measured | median | range | processor time |");
    println!("|---|---|---|---|---|");
    for (name, case) in cases {
        if words.is_empty() || words.iter().any(|word| word == name) {
            case(&server, &extent)?;
        }
    }
    Ok(())
}

/// Two processes with a thread each, against a pool of two workers, for batches that compute.
fn compute(server: &Server, extent: &Extent) -> Result<(), Box<dyn Error>> {
    against_a_pool(server, extent, Work::Compute, "compute")
}

/// The same for batches that wait, which need no processor: what is lost is lost by the protocol.
fn wait(server: &Server, extent: &Extent) -> Result<(), Box<dyn Error>> {
    against_a_pool(server, extent, Work::Wait, "wait")
}

fn against_a_pool(
    server: &Server,
    extent: &Extent,
    work: fn(u64) -> Work,
    name: &str,
) -> Result<(), Box<dyn Error>> {
    for (micros, batches) in [(10_000, 300), (1_000, 2_000)] {
        let run = Run { work: work(micros), batches: extent.batches(batches) };
        let _workers =
            [Worker::start(server, run.work, "a", 1), Worker::start(server, run.work, "b", 1)];
        run.on_cluster(server)?;
        let mut rounds = Vec::new();
        for _ in 0..extent.rounds {
            let local = server.sample(|| run.on_pool())?;
            rounds.push((local, server.sample(|| run.on_cluster(server))?));
        }
        show(&format!("{name}, {} ms", micros / 1_000), "pool / cluster", &rounds);
    }
    Ok(())
}

/// Three nodes, one of which is 20 times slower, against the ideal: the sum of their speeds.
fn slow(server: &Server, extent: &Extent) -> Result<(), Box<dyn Error>> {
    let run = Run { work: Work::Wait(10_000), batches: extent.batches(240) };
    let _workers = [
        Worker::start(server, run.work, "a", 1),
        Worker::start(server, run.work, "b", 1),
        Worker::start(server, run.work, "slow", 20),
    ];
    run.on_cluster(server)?;
    let ideal = Duration::from_micros(10_000).mul_f64(run.batches as f64 / (2.0 + 1.0 / 20.0));
    let mut rounds = Vec::new();
    for _ in 0..extent.rounds {
        let sample = server.sample(|| run.on_cluster(server))?;
        rounds.push((sample, Sample { wall: ideal, processor: sample.processor }));
    }
    show("a node 20 times slower", "cluster / ideal", &rounds);
    Ok(())
}

/// Batches of 64 KiB without any work, against publishing, pulling and acknowledging as many messages.
fn large(server: &Server, extent: &Extent) -> Result<(), Box<dyn Error>> {
    let run = Run { work: Work::Large, batches: extent.batches(8_000) };
    let _workers =
        [Worker::start(server, run.work, "a", 1), Worker::start(server, run.work, "b", 1)];
    let _bare =
        [Worker::start(server, Work::Bare, "c", 1), Worker::start(server, Work::Bare, "d", 1)];
    run.on_cluster(server)?;
    bare::publish(server.url(), run.batches / 10)?;
    let mut rounds = Vec::new();
    for _ in 0..extent.rounds {
        let cluster = server.sample(|| run.on_cluster(server))?;
        rounds.push((cluster, server.sample(|| bare::publish(server.url(), run.batches))?));
    }
    show("64 KiB, no work", "cluster / bare loop", &rounds);
    Ok(())
}

/// Prints the ratios of the first to the second times of each round.
fn show(case: &str, measured: &str, rounds: &[(Sample, Sample)]) {
    let ratios = |time: fn(&Sample) -> Duration| {
        let ratio =
            |(left, right): &(Sample, Sample)| time(left).as_secs_f64() / time(right).as_secs_f64();
        let mut ratios: Vec<_> = rounds.iter().map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    let (wall, processor) = (ratios(|sample| sample.wall), ratios(|sample| sample.processor));
    println!(
        "| {case} | {measured} | {:.3} | {:.3} to {:.3} | {:.3} |",
        wall[wall.len() / 2],
        wall[0],
        wall[wall.len() - 1],
        processor[processor.len() / 2]
    );
    let seconds = |time: Duration| format!("{:.3}", time.as_secs_f64());
    for (left, right) in rounds {
        eprintln!("{case}: {} s, {} s", seconds(left.wall), seconds(right.wall));
    }
}
