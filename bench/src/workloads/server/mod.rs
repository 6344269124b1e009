//! The server workload: how long requests take that come from outside at times of their own, while every worker is
//! busy for most of the time.
//!
//! A request works, divides work into parts, waits for another pool, and works again. Its latency counts from the time
//! at which it was due, whether or not the thread that sends requests was on time. Otherwise a pool that keeps that
//! thread from running would be measured less often while it is slow.

mod arrivals;
mod heist;
mod rayon;
mod request;
mod threads;
#[cfg(feature = "peers")]
mod tokio;
mod work;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::metric::{self, Metric};
use harness::row::{Row, Sample, nanoseconds};
use harness::stats::percentile;
use harness::target::{Target, Than};
use harness::usage;

use crate::peers::{Pool, kept};
use request::{PIECES, Request, Run};
use work::Pace;

/// The number of workers of the pool that serves.
const WORKERS: usize = 2;

/// The number of workers of the other pool, which every request waits for.
const OTHERS: usize = 1;

/// The part of the processors' time that the requests take, without what a library adds.
const LOAD: f64 = 0.7;

/// The duration of one piece of a request.
const PIECE: Duration = Duration::from_micros(if cfg!(test) { 5 } else { 50 });

/// The number of requests in a sample: half a second. More requests make the outer percentiles more meaningful; fewer
/// make a round shorter.
const REQUESTS: usize = if cfg!(test) { 20 } else { 2_000 };

/// The number of requests before these. They are verified but not measured: a library may start threads for them.
const WARM_UP: usize = if cfg!(test) { 5 } else { 200 };

const METRICS: [(&Metric, f64); 4] =
    [(&metric::P50, 0.5), (&metric::P99, 0.99), (&metric::P999, 0.999), (&metric::LONGEST, 1.0)];

/// All entries but heist's own.
const PEERS: &[&str] = &["rayon", "tokio", "tokio-async"];

/// The peers whose requests block a thread while they wait, as ours do.
const BLOCKING: &[&str] = &["rayon", "tokio"];

const REFERENCE: &str = "rayon";

/// The highest wanted ratios to the best peer. The longest request of a sample is too much a matter of luck for a
/// target.
const LIMITS: [(&Metric, f64); 3] =
    [(&metric::P50, 1.0), (&metric::P99, 1.0), (&metric::P999, 1.1)];

/// Serves requests in the way that the documentation of a library recommends.
trait Server: 'static {
    const NAME: &'static str;

    type Pool: Pool;

    /// Submits a request and returns at once.
    fn submit(pools: Pools<Self::Pool>, request: Request);
}

/// Two pools of the same library.
struct Pools<P: 'static> {
    main: &'static P,
    /// The pool that every request waits for.
    other: &'static P,
}

impl<P> Clone for Pools<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Pools<P> {}

pub(crate) fn rows() -> Vec<Row> {
    let mut metrics = METRICS.map(|(metric, _)| metric).to_vec();
    metrics.push(&metric::THREADS);
    if usage::KNOWN {
        metrics.push(&metric::CPU);
    }
    let case = format!("load-{:.0}", 100.0 * LOAD);
    let title = format!("requests from outside, {:.0} % load", 100.0 * LOAD);
    let mut row = Row::of_pools("server", case, title, metrics);
    row.references = vec![REFERENCE];
    enter::<heist::Server>(&mut row);
    enter::<rayon::Server>(&mut row);
    #[cfg(feature = "peers")]
    {
        enter::<tokio::Blocking>(&mut row);
        enter::<tokio::Async>(&mut row);
    }
    let target = |peers, (metric, at_most)| Target {
        of: heist::Server::NAME,
        metric,
        than: Than::Best(peers),
        at_most,
    };
    row.targets = vec![target(BLOCKING, (&metric::P99, 1.0))];
    row.targets.extend(LIMITS.map(|limit| target(PEERS, limit)));
    vec![row]
}

/// Adds an entry. All entries have the same arrivals in the same round, and others in the next one.
fn enter<S: Server>(row: &mut Row) {
    let round = AtomicU64::new(0);
    row.enter(S::NAME, move || measure::<S>(round.fetch_add(1, Ordering::Relaxed)));
}

fn measure<S: Server>(round: u64) -> Sample {
    // The first one is the pool that observers see.
    let main = kept::pool::<S::Pool>(WORKERS);
    let pools = Pools { main, other: kept::warm(OTHERS) };
    let processors = thread::available_parallelism().map_or(1, usize::from).min(WORKERS);
    let run = Run::new(WARM_UP + REQUESTS, Pace::calibrated(processors).turns(PIECE));
    let gap = PIECE.mul_f64(f64::from(PIECES) / LOAD / processors as f64);
    let arrivals = arrivals::draw(round, WARM_UP + REQUESTS, gap);

    let (begin, before) = (Instant::now(), usage::look());
    for (number, after) in arrivals.into_iter().enumerate() {
        let due = begin + after;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        S::submit(pools, Request::new(&run, number, due));
    }
    let mut times = run.wait(S::NAME).split_off(WARM_UP);
    let used = usage::look() - before;

    let answers = times.clone();
    let mut values: Vec<f64> =
        METRICS.iter().map(|&(_, fraction)| percentile(&mut times, fraction)).collect();
    values.push(run.threads().peak() as f64);
    if usage::KNOWN {
        values.push(nanoseconds(used.cpu) / begin.elapsed().as_secs_f64());
    }
    Sample { answers, ..Sample::of(values) }
}
