//! What is run: on a pool, on a cluster, and in a worker.

use std::error::Error;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use heist::Pool;
use heist::pipeline::Pipeline;
use heist_cluster::{Cluster, RunOn};

use crate::bare;
use crate::processes::Server;

/// What is done with a batch.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Computes for so many microseconds.
    Compute(u64),
    /// Waits for so many microseconds, times the factor of the node.
    Wait(u64),
    /// Has 64 KiB, and does nothing.
    Large,
    /// No batches of a pipeline: messages of 64 KiB that are acknowledged.
    Bare,
}

const VARIABLE: &str = "HEIST_BENCH_WORK";
/// How much slower than the others a node waits.
pub(crate) const FACTOR: &str = "HEIST_BENCH_FACTOR";
pub(crate) const LARGE: usize = 64 << 10;

impl Work {
    /// What a worker is started with.
    pub(crate) fn variable(self) -> (&'static str, String) {
        let text = match self {
            Self::Compute(micros) => format!("compute {micros} {}", steps_in(micros)),
            Self::Wait(micros) => format!("wait {micros}"),
            Self::Large => "large".to_owned(),
            Self::Bare => "bare".to_owned(),
        };
        (VARIABLE, text)
    }

    /// Returns what this process is to do as a worker, if it is one.
    pub(crate) fn from_environment() -> Option<Self> {
        let text = std::env::var(VARIABLE).ok()?;
        let mut words = text.split(' ');
        let name = words.next()?;
        let mut number = || words.next().and_then(|word| word.parse().ok());
        match name {
            "compute" => Some(Self::Compute(number()?)),
            "wait" => Some(Self::Wait(number()?)),
            "large" => Some(Self::Large),
            _ => Some(Self::Bare),
        }
    }

    /// Serves as a worker, for ever.
    pub(crate) fn serve(self) -> Result<(), Box<dyn Error>> {
        if let Self::Bare = self {
            return bare::consume(&std::env::var("HEIST_CLUSTER_URL")?);
        }
        let run = Run { work: self, batches: 0 };
        run.on(&Cluster::from_env()?)
    }

    fn pipeline_name(self) -> &'static str {
        match self {
            Self::Compute(_) => "compute",
            Self::Wait(_) => "wait",
            Self::Large | Self::Bare => "large",
        }
    }
}

/// A run of so many batches.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) work: Work,
    pub(crate) batches: u64,
}

impl Run {
    pub(crate) fn on_cluster(&self, server: &Server) -> Result<(), Box<dyn Error>> {
        self.on(&Cluster::builder().url(server.url()).build()?)
    }

    fn on(&self, cluster: &Cluster) -> Result<(), Box<dyn Error>> {
        let (name, batches) = (self.work.pipeline_name(), self.batches);
        let (mut count, mut sum) = (0, 0);
        let mut sink = |number: u64| {
            count += 1;
            sum += number;
        };
        let report = if let Work::Large = self.work {
            let text = "x".repeat(LARGE);
            let items = (0..batches).map(move |_| text.clone());
            let pipeline = Pipeline::new(items).batch(1).map(|text: String| text.len() as u64);
            pipeline.ordered().run_on(cluster, name, sink)?
        } else {
            let stage = self.stage();
            let pipeline = Pipeline::new(0..batches).batch(1).map(stage);
            pipeline.ordered().run_on(cluster, name, &mut sink)?
        };
        if report.role == heist_cluster::Role::Coordinator {
            self.check(count, sum);
        }
        Ok(())
    }

    pub(crate) fn on_pool(&self) -> Result<(), Box<dyn Error>> {
        let pool = Pool::builder().workers(2).build()?;
        let (mut count, mut sum) = (0, 0);
        let pipeline = Pipeline::new(0..self.batches).batch(1).map(self.stage()).ordered();
        pipeline.run(&pool, |number| {
            count += 1;
            sum += number;
        })?;
        self.check(count, sum);
        Ok(())
    }

    fn check(&self, count: u64, sum: u64) {
        let expected = match self.work {
            Work::Large => self.batches * LARGE as u64,
            _ => self.batches * self.batches.saturating_sub(1) / 2,
        };
        assert_eq!(
            (count, sum),
            (self.batches, expected),
            "verification failed: a result is wrong"
        );
    }

    /// The stage of the pipelines of numbers. The same type for all kinds of work, so it has one fingerprint.
    fn stage(&self) -> impl Fn(u64) -> u64 + Sync + use<> {
        let factor = std::env::var(FACTOR).ok().and_then(|factor| factor.parse().ok());
        let factor: u32 = factor.unwrap_or(1);
        let work = self.work;
        let steps = match work {
            // In a worker, that of its coordinator: both do the same.
            Work::Compute(micros) => steps_of_environment().unwrap_or_else(|| steps_in(micros)),
            _ => 0,
        };
        move |number| {
            match work {
                Work::Wait(micros) => thread::sleep(Duration::from_micros(micros) * factor),
                _ => {
                    black_box(compute(steps));
                }
            }
            number
        }
    }
}

fn steps_of_environment() -> Option<u64> {
    std::env::var(VARIABLE).ok()?.split(' ').nth(2)?.parse().ok()
}

/// Returns how many steps take this long. It is measured once.
fn steps_in(micros: u64) -> u64 {
    static PER_MILLI: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let per_milli = PER_MILLI.get_or_init(|| {
        const STEPS: u64 = 2_000_000;
        let once = || {
            let began = Instant::now();
            black_box(compute(STEPS));
            began.elapsed()
        };
        let least = (0..10).map(|_| once()).min().unwrap_or_default();
        (STEPS as f64 / (least.as_secs_f64() * 1e3)) as u64
    });
    per_milli * micros / 1_000
}

/// Steps of which each needs the one before.
fn compute(steps: u64) -> u64 {
    (0..steps)
        .fold(1, |state: u64, step| black_box(state).wrapping_mul(0x5851_f42d_4c95_7f2d) ^ step)
}
