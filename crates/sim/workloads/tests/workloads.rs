//! Every workload runs on every strategy, verifies its result, and is the same for the same seed.

use heist_sim_workloads::{Error, Machine, Run, Strategy, Workload, sweep};

#[global_allocator]
static ALLOCATOR: heist_sim::Allocator = heist_sim::Allocator;

/// The work of each worker, in nanoseconds: enough for all of them to take part.
const SPAN: u64 = 150_000;

fn short(workload: Workload, strategy: Strategy, workers: usize) -> Run {
    Run { span: SPAN, ..Run::new(workload, strategy, workers) }
}

#[test]
fn every_workload_runs_on_every_strategy() {
    for &workload in Workload::ALL {
        for &strategy in Strategy::ALL {
            for workers in [1, 2, 8] {
                // The workload itself compares what was done with what had to be done.
                let measured = short(workload, strategy, workers).measure().unwrap();
                let context = format!("{workload} {strategy} {workers}: {measured:?}");
                assert!(measured.parts > 0 && measured.elapsed > 0, "{context}");
                assert!(measured.utilization > 0.0 && measured.utilization < 1.05, "{context}");
                assert!(measured.report.left.is_empty(), "{context}");
            }
        }
    }
}

#[test]
fn tasks_are_counted_once() {
    for &strategy in Strategy::ALL {
        let measured = short(Workload::Spawn, strategy, 8).measure().unwrap();
        assert_eq!(measured.tasks, measured.parts, "{strategy}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for &workload in Workload::ALL {
        let run = short(workload, Strategy::WorkStealing, 8);
        let bytes = |run: &Run| serde_json::to_string(&run.measure().unwrap()).unwrap();
        let first = bytes(&run);
        // What ran before does not matter.
        short(Workload::Sort, Strategy::GlobalQueue, 3).measure().unwrap();
        assert_eq!(first, bytes(&run), "{workload}");
        assert_ne!(first, bytes(&Run { seed: 2, ..run }), "{workload}");
    }
}

#[test]
fn two_cores_are_faster_than_one() {
    let run = Run { span: 1_000_000, ..Run::new(Workload::Join, Strategy::WorkStealing, 1) };
    let mut seen = Vec::new();
    let points = sweep(&run, &[1, 2], |point| seen.push(point.efficiency)).unwrap();
    assert_eq!(points[0].efficiency, 1.0);
    assert!((0.9..1.01).contains(&points[1].efficiency), "{}", points[1].efficiency);
    assert_eq!(seen.len(), 2);
}

/// One queue with one lock does not scale to tasks of a microsecond. A model in which it did would not show the costs of
/// contention.
#[test]
fn a_global_queue_collapses() {
    let efficiency = |strategy| {
        let points = sweep(&short(Workload::Spawn, strategy, 1), &[1, 24], |_| ()).unwrap();
        points[1].efficiency
    };
    let (global, stealing) =
        (efficiency(Strategy::GlobalQueue), efficiency(Strategy::WorkStealing));
    println!(
        "spawn, 24 workers (simulated): global queue {global:.3}, work stealing {stealing:.3}"
    );
    assert!(global < 0.3, "{global}");
    assert!(stealing > 2.0 * global, "{stealing}");
}

#[test]
fn a_machine_that_is_too_small_is_refused() {
    let run = Run {
        machine: Some(Machine::shipped("desktop-16").unwrap()),
        ..short(Workload::Join, Strategy::WorkStealing, 17)
    };
    let error = run.measure().unwrap_err();
    assert!(matches!(error, Error::TooFewCores { workers: 17, cores: 16 }), "{error}");
}

#[test]
fn shipped_machines_run_the_workloads() {
    for name in Machine::shipped_names() {
        let machine = Machine::shipped(name).unwrap();
        let workers = machine.cores().min(24);
        let run = Run {
            machine: Some(machine),
            ..short(Workload::Join, Strategy::WorkStealing, workers)
        };
        assert_eq!(run.measure().unwrap().machine, name);
    }
}
