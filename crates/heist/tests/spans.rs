//! With the feature `tracing`, every task is a span for the subscriber of the process.

#![cfg(all(feature = "tracing", not(any(loom, shuttle))))]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use heist::Pool;
use tracing::span::{Attributes, Id};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

/// What a subscriber has seen.
#[derive(Default)]
struct Seen {
    new: AtomicUsize,
    entered: Mutex<Vec<ThreadId>>,
    left: AtomicUsize,
    fails: AtomicBool,
}

struct Watch(Arc<Seen>);

impl<S: Subscriber> Layer<S> for Watch {
    /// Makes `tracing` ask `enabled` for every span.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let metadata = attributes.metadata();
        if (metadata.name(), metadata.target()) == ("task", "heist") {
            self.0.new.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Accepts spans only, and panics on request.
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        assert!(!self.0.fails.load(Ordering::Relaxed), "planned");
        metadata.is_span()
    }

    fn on_enter(&self, _: &Id, _: Context<'_, S>) {
        self.0.entered.lock().unwrap().push(thread::current().id());
    }

    fn on_exit(&self, _: &Id, _: Context<'_, S>) {
        self.0.left.fetch_add(1, Ordering::Relaxed);
    }
}

/// This is the only test of the binary, because the subscriber belongs to the whole process.
#[test]
fn a_task_is_a_span() {
    let seen = Arc::new(Seen::default());
    let subscriber = Registry::default().with(Watch(Arc::clone(&seen)));
    tracing::dispatcher::set_global_default(Dispatch::new(subscriber)).unwrap();
    let pool = Pool::builder().workers(2).build().unwrap();
    let inside = || tracing::Span::current().metadata().map(Metadata::name);
    assert_eq!(pool.spawn(inside).join().unwrap(), Some("task"));
    assert!(pool.spawn(|| panic!("planned")).join().is_err());
    assert_eq!(pool.spawn(inside).join().unwrap(), Some("task"));
    seen.fails.store(true, Ordering::Relaxed);
    assert_eq!(pool.spawn(|| 1).join().unwrap(), 1);
    seen.fails.store(false, Ordering::Relaxed);
    pool.stop();
    assert_eq!(seen.new.load(Ordering::Relaxed), 3);
    assert_eq!(seen.left.load(Ordering::Relaxed), 3);
    assert!(!seen.entered.lock().unwrap().contains(&thread::current().id()));
}
