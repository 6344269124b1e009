//! Random mixtures of faults, one after another in a run. `HEIST_TEST_SEED` repeats one of them.

// Addresses of the loopback interface and processes that end with their parent are as Linux has them.
#![cfg(target_os = "linux")]

mod common;

use common::proxy::Proxy;
use common::roles::{cluster, squares};
use common::{Guard, IN_FLIGHT, JETSTREAM, Server, drain, until};
use heist_cluster::{Observer, Storage};

/// Batches between two faults: more than are in flight, so those of the next gate are the only ones that are outstanding.
const STEP: u64 = 20;
/// The number of faults of a run.
const FAULTS: u64 = 6;

/// Numbers that look random, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    KillWorker,
    StopWorker,
    DrainWorker,
    CutCoordinator,
    KillServer,
}

const ALL: [Fault; 5] = [
    Fault::KillWorker,
    Fault::StopWorker,
    Fault::DrainWorker,
    Fault::CutCoordinator,
    Fault::KillServer,
];

/// A cluster whose only worker has the first batch of the next gate when a fault comes.
struct Scene {
    server: Server,
    proxy: Proxy,
    /// The last one takes part. Those before it were stopped, and go on at the end.
    workers: Vec<Guard>,
    started: u64,
}

impl Scene {
    fn node(&self) -> String {
        format!("n{}", self.started)
    }

    fn start_worker(&mut self) {
        self.started += 1;
        let step = STEP.to_string();
        // A thread for each batch in flight and some copies: one that waits for its gate must not hold up one before it.
        let variables = [("HEIST_TEST_STEP", step.as_str()), ("HEIST_CLUSTER_THREADS", "24")];
        let worker = self.server.worker_at(&self.server.url(), &self.node(), &variables);
        self.workers.push(worker);
    }

    /// Lets a fault happen while the batches of a gate are outstanding, and waits until it was felt.
    fn suffer(&mut self, fault: Fault, gate: u64, observer: &mut Observer) {
        let first = gate * STEP;
        self.server.wait_for_start(&self.node(), Some(first));
        until("what is outstanding", || {
            let jobs = observer.status().ok()?.jobs;
            jobs.iter().any(|job| job.outstanding == IN_FLIGHT - 1).then_some(())
        });
        match fault {
            Fault::KillWorker => drop(self.workers.pop()),
            Fault::StopWorker => self.workers.last().expect("a worker").stop(),
            Fault::DrainWorker => {
                drain(observer, &self.node());
            }
            Fault::CutCoordinator => {
                let accepted = self.proxy.accepted();
                self.proxy.cut();
                self.proxy.wait_for_connection_after(accepted);
            }
            Fault::KillServer => {
                let accepted = self.proxy.accepted();
                self.server.kill();
                self.server.run();
                self.proxy.wait_for_connection_after(accepted);
            }
        }
        if matches!(fault, Fault::KillWorker | Fault::StopWorker | Fault::DrainWorker) {
            self.start_worker();
            // It has a batch that the other one had held or started.
            let node = self.node();
            until("a batch of the gate", || {
                (first..first + STEP)
                    .any(|batch| self.server.note(&format!("started-{node}-{batch}")).exists())
                    .then_some(())
            });
        }
        self.server.open_gate_number(gate);
    }
}

fn run(seed: u64, storage: Storage) {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let proxy = Proxy::new(server.host(), server.port());
    let settings = cluster(&proxy.url()).storage(storage).build().expect("settings");
    let mut observer = cluster(&server.url()).build().expect("settings").observe().expect("a link");
    let mut scene = Scene { server, proxy, workers: Vec::new(), started: 0 };
    scene.start_worker();
    let mut random = Random(seed);
    // Each kind comes, and the order is random.
    let mut left = ALL.to_vec();
    let faults: Vec<_> = (0..FAULTS)
        .map(|_| {
            if left.is_empty() {
                ALL[random.below(ALL.len())]
            } else {
                left.swap_remove(random.below(left.len()))
            }
        })
        .collect();
    println!("seed {seed}: {faults:?}");
    let batches = (FAULTS + 1) * STEP;
    let mut results = Vec::new();
    let report = squares(&settings, batches, |number, square| {
        results.push(square);
        let gate = (number + 1) / STEP;
        if (number + 1) % STEP == 0 && gate <= FAULTS {
            scene.suffer(faults[gate as usize - 1], gate, &mut observer);
        }
    });
    let report = report.expect("a run");
    assert_eq!(results, (0..batches).map(|number| number * number).collect::<Vec<_>>());
    assert_eq!((report.batches, report.results), (batches, batches));
    assert!(report.reconnects > 0);
    assert!(report.redelivered + report.resent > 0);
    assert!(report.nodes.len() as u64 >= 3, "{:?}", report.nodes.keys());
}

#[test]
fn every_result_comes_once_through_random_faults() {
    let named = std::env::var("HEIST_TEST_SEED").ok();
    let named = named.map(|seed| seed.parse().expect("HEIST_TEST_SEED must be a number"));
    let seeds = named.map_or(vec![1, 2], |seed| vec![seed]);
    for (seed, storage) in seeds.into_iter().zip([Storage::Memory, Storage::File]) {
        run(seed, storage);
    }
}
