//! The contract of cancel tokens: a cancellation reaches every descendant, whatever was dropped between, and
//! neither it nor a drop needs more stack the longer a chain of tokens is.

use heist::CancelToken;
use heist_testkit::limits::disable_core_dumps;
use heist_testkit::process::in_child;
use heist_testkit::test_path;
use heist_testkit::watchdog::watched;

/// More tokens than the stack of a thread has room for calls.
const LONG: usize = 1_000_000;

/// Runs the body in a process of its own: a full stack ends the process.
fn alone(test: &'static str, body: impl FnOnce()) {
    watched(test, || {
        in_child("alone", &[], || {
            disable_core_dumps();
            body();
        });
    });
}

/// Returns a token and its children's children, each a child of the one before.
fn chain(tokens: usize) -> Vec<CancelToken> {
    let next = |token: &CancelToken| Some(token.child());
    std::iter::successors(Some(CancelToken::new()), next).take(tokens).collect()
}

#[test]
fn a_dropped_token_between_passes_a_cancellation_on() {
    let token = CancelToken::new();
    let grandchild = token.child().child();
    let distant = grandchild.child().child().child();
    let cousin = token.child().child();
    grandchild.cancel();
    assert!(distant.is_cancelled() && !cousin.is_cancelled() && !token.is_cancelled());
    token.cancel();
    assert!(cousin.is_cancelled());
    assert!(token.child().child().is_cancelled());
}

/// What is cancelled is the last token of a branch, whose other tokens were dropped in any order.
#[test]
fn tokens_between_are_dropped_in_any_order() {
    for kept in 0..32_u32 {
        let mut tokens: Vec<_> = chain(7).into_iter().map(Some).collect();
        for (at, token) in tokens[1..6].iter_mut().enumerate() {
            if kept & (1 << at) == 0 {
                *token = None;
            }
        }
        let first = tokens[0].take().expect("kept");
        first.cancel();
        assert!(tokens.iter().flatten().all(CancelToken::is_cancelled), "{kept:b}");
        assert!(tokens[6].is_some());
    }
}

#[test]
fn cancel_of_a_long_chain_needs_no_stack() {
    alone(test_path!("cancel_of_a_long_chain_needs_no_stack"), || {
        let tokens = chain(LONG);
        tokens[0].cancel();
        assert!(tokens.iter().all(CancelToken::is_cancelled));
    });
}

#[test]
fn cancel_of_a_long_chain_reaches_its_end() {
    alone(test_path!("cancel_of_a_long_chain_reaches_its_end"), || {
        let mut tokens = chain(LONG);
        tokens.drain(1..LONG - 1);
        tokens[0].cancel();
        assert!(tokens[1].is_cancelled());
    });
}

#[test]
fn drop_of_a_long_chain_needs_no_stack() {
    alone(test_path!("drop_of_a_long_chain_needs_no_stack"), || {
        // The last one keeps all others.
        let last = chain(LONG).pop().expect("a token");
        drop(last);
        // The cancellation drops them: it has the last reference for a moment, at most.
        let mut tokens = chain(LONG);
        tokens.drain(1..LONG - 1);
        let (last, first) = (tokens.pop().expect("a token"), tokens.pop().expect("a token"));
        std::thread::scope(|scope| {
            scope.spawn(move || drop(last));
            first.cancel();
        });
    });
}
