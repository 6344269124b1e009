//! The contract of the types: what may be sent to another thread, what may be shared, and what may not.

use std::error::Error;
use std::fmt::Debug;

use rayon_core::{
    BroadcastContext, FnContext, Scope, ScopeFifo, ThreadBuilder, ThreadPool, ThreadPoolBuildError,
    ThreadPoolBuilder, Yield,
};

fn is_send_and_sync<T: Send + Sync>() {}
fn is_send<T: Send>() {}
fn is_debug<T: Debug>() {}

/// Fails to compile, because of an ambiguity, if the type has the trait.
macro_rules! is_not {
    ($type:ty: $trait:path) => {
        const _: fn() = || {
            trait Ambiguous<Marker> {
                fn check() {}
            }
            struct Other;
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + $trait> Ambiguous<Other> for T {}
            let _ = <$type as Ambiguous<_>>::check;
        };
    };
}

is_not!(FnContext: Send);
is_not!(FnContext: Sync);
is_not!(BroadcastContext<'static>: Send);
is_not!(BroadcastContext<'static>: Sync);
is_not!(ThreadPoolBuilder: Send);
is_not!(ThreadPoolBuilder: Sync);
is_not!(ThreadPool: Clone);

#[test]
fn threads() {
    is_send_and_sync::<ThreadPool>();
    is_send_and_sync::<Scope<'static>>();
    is_send_and_sync::<ScopeFifo<'static>>();
    is_send_and_sync::<ThreadPoolBuildError>();
    is_send_and_sync::<Yield>();
    is_send::<ThreadBuilder>();
}

#[test]
#[expect(deprecated, reason = "it has the trait all the same")]
fn debug() {
    is_debug::<ThreadPool>();
    is_debug::<ThreadPoolBuilder>();
    is_debug::<rayon_core::Configuration>();
    is_debug::<ThreadBuilder>();
    is_debug::<ThreadPoolBuildError>();
    is_debug::<Scope<'static>>();
    is_debug::<ScopeFifo<'static>>();
    is_debug::<FnContext>();
    is_debug::<BroadcastContext<'static>>();
    is_debug::<Yield>();
}

#[test]
fn error() {
    fn is_error<T: Error + 'static>() {}
    is_error::<ThreadPoolBuildError>();
}

/// Closures that borrow, that return a value that is only `Send`, and whose types are inferred.
#[test]
fn inference() {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
    let words = [String::from("one"), String::from("two")];
    let (a, b) = pool.join(|| &words[0], || std::cell::Cell::new(words[1].len()));
    assert_eq!((a.as_str(), b.get()), ("one", 3));
    let lengths: Vec<_> = pool.broadcast(|_| words.len());
    assert_eq!(lengths, [2, 2]);
    let mut longest = None;
    pool.scope(|scope| scope.spawn(|_| longest = words.iter().max_by_key(|word| word.len())));
    assert_eq!(longest.map(String::as_str), Some("two"));
    let boxed: Box<dyn Error> = ThreadPoolBuilder::new()
        .spawn_handler(|_| Err(std::io::Error::other("no")))
        .build()
        .unwrap_err()
        .into();
    assert_eq!(boxed.to_string(), "no");
}
