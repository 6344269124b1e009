//! tokio: with threads that wait, as in programs whose requests block, and with tasks that await.

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::request::{PARTS, Request};
use super::{Pools, Server};
use crate::peers::Pool as _;

/// A request is a closure for `spawn_blocking`, of which the runtime runs up to 512 at a time. It waits for its parts,
/// which are tasks. If they were closures of the same kind, 512 requests that wait would leave no thread for any part.
pub(super) struct Blocking;

/// A request and its parts are tasks, and no thread waits.
pub(super) struct Async;

impl Server for Blocking {
    const NAME: &'static str = Runtime::NAME;

    type Pool = Runtime;

    fn submit(pools: Pools<Runtime>, request: Request) {
        drop(pools.main.spawn_blocking(move || {
            let main = pools.main.handle();
            let begin = request.begin();
            let spawn = |part| {
                let request = request.clone();
                main.spawn(async move { request.part(part) })
            };
            let parts = main.block_on(sum((0..PARTS).map(spawn).collect()));
            let elsewhere = request.clone();
            let elsewhere = pools.other.spawn(async move { elsewhere.elsewhere() });
            let elsewhere = main.block_on(elsewhere).expect("no piece of work panics");
            request.finish(begin.wrapping_add(parts).wrapping_add(elsewhere));
        }));
    }
}

impl Server for Async {
    const NAME: &'static str = "tokio-async";

    type Pool = Runtime;

    fn submit(pools: Pools<Runtime>, request: Request) {
        drop(pools.main.handle().spawn(async move {
            let begin = request.begin();
            let spawn = |part| {
                let request = request.clone();
                tokio::spawn(async move { request.part(part) })
            };
            let parts = sum((0..PARTS).map(spawn).collect()).await;
            let elsewhere = request.clone();
            let elsewhere = pools.other.handle().spawn(async move { elsewhere.elsewhere() });
            let elsewhere = elsewhere.await.expect("no piece of work panics");
            request.finish(begin.wrapping_add(parts).wrapping_add(elsewhere));
        }));
    }
}

/// Returns the sum of the parts' results.
async fn sum(parts: Vec<JoinHandle<u64>>) -> u64 {
    let mut sum = 0_u64;
    for part in parts {
        sum = sum.wrapping_add(part.await.expect("no piece of work panics"));
    }
    sum
}
