//! rayon: a task, a scope in it, and `install` on the other pool.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Pools;
use super::request::{PARTS, Request};
use crate::peers::Pool as _;
use crate::peers::rayon::ThreadPool;

pub(super) struct Server;

impl super::Server for Server {
    const NAME: &'static str = ThreadPool::NAME;

    type Pool = ThreadPool;

    fn submit(pools: Pools<ThreadPool>, request: Request) {
        pools.main.spawn(move || {
            let sum = &AtomicU64::new(request.begin());
            rayon::scope(|scope| {
                for part in 0..PARTS {
                    let request = &request;
                    scope.spawn(move |_| _ = sum.fetch_add(request.part(part), Ordering::Relaxed));
                }
            });
            let elsewhere = pools.other.install(|| request.elsewhere());
            request.finish(sum.load(Ordering::Relaxed).wrapping_add(elsewhere));
        });
    }
}
