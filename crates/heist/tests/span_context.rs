//! `Builder::context` carries the current span of `tracing` to the tasks that are spawned within it.

#![cfg(all(feature = "tracing", not(any(loom, shuttle))))]

use heist::{Pool, Strategy};
use tracing::{Span, dispatcher, info_span};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// Returns whether the calling code runs within a span `request`. The span of the task may be between them: a subscriber does
/// not enter a span again that the thread is in already.
fn in_request() -> bool {
    let Some(current) = Span::current().id() else { return false };
    dispatcher::get_default(|subscriber| {
        let registry = subscriber.downcast_ref::<Registry>().expect("set below");
        let span = registry.span(&current).expect("it is entered");
        span.scope().any(|span| span.name() == "request")
    })
}

/// This is the only test of the binary, because the subscriber belongs to the whole process.
#[test]
fn a_task_runs_in_the_span_of_its_spawner() {
    tracing::subscriber::set_global_default(Registry::default()).unwrap();
    for strategy in Strategy::ALL {
        let pool = Pool::builder()
            .workers(2)
            .strategy(strategy)
            .max_queued(2)
            .context(|| {
                let span = Span::current();
                move |run: &mut dyn FnMut()| span.in_scope(run)
            })
            .build()
            .unwrap();
        let request = info_span!("request");
        let (task, inner) = request.in_scope(|| {
            let inner = || heist::spawn(in_request).join().unwrap();
            (pool.spawn(in_request), pool.spawn(inner))
        });
        assert!(task.join().unwrap());
        assert!(inner.join().unwrap());
        let batch = request.in_scope(|| pool.spawn_batch([in_request, in_request, in_request]));
        assert_eq!(batch.join().unwrap(), [true; 3]);
        assert!(request.in_scope(|| pool.install(in_request)));
        assert!(request.in_scope(|| pool.spawn(|| panic!("planned"))).join().is_err());
        #[cfg(feature = "futures")]
        assert!(every_poll_in_request(|future| request.in_scope(|| pool.spawn_future(future))));
        // Nothing is left behind, neither here nor there.
        assert!(!in_request());
        assert!(!pool.spawn(in_request).join().unwrap());
        assert_eq!(pool.broadcast(|_| in_request()), [false; 2]);
    }
}

/// Spawns a future that is polled three times, and returns whether each poll was within a span `request`.
#[cfg(feature = "futures")]
fn every_poll_in_request(
    spawn: impl FnOnce(
        std::pin::Pin<Box<dyn Future<Output = bool> + Send>>,
    ) -> heist::FutureHandle<bool>,
) -> bool {
    let mut polls = 0;
    let mut are_all = true;
    let future = std::future::poll_fn(move |context| {
        (polls, are_all) = (polls + 1, are_all && in_request());
        if polls == 3 {
            return std::task::Poll::Ready(are_all);
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    });
    spawn(Box::pin(future)).join().unwrap()
}
