//! The context of a task: captured where the task is spawned, and restored around its run.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::panic::{abandon, contain};

/// Restores a context around the closure that it is given.
type Restore = Box<dyn FnOnce(&mut dyn FnMut()) + Send>;

/// The hook that captures a context.
pub(crate) struct ContextHook(Box<dyn Fn() -> Restore + Send + Sync>);

/// A context that was captured.
pub(crate) struct Captured(Restore);

impl ContextHook {
    pub(crate) fn new<C, R>(capture: C) -> Self
    where
        C: Fn() -> R + Send + Sync + 'static,
        R: FnOnce(&mut dyn FnMut()) + Send + 'static,
    {
        Self(Box::new(move || Box::new(capture())))
    }

    /// Captures the context of the calling thread. Panics if the hook does.
    pub(crate) fn capture(&self) -> Captured {
        Captured((self.0)())
    }
}

impl Captured {
    /// Calls the closure in this context, once, whatever the hook does.
    ///
    /// Panics with the panic of the closure, or else with that of the hook. The hook does not see the panic of the closure,
    /// so that what it does after the closure is always done.
    pub(crate) fn around<T>(self, closure: impl FnOnce() -> T) -> T {
        let mut closure = Some(closure);
        let mut outcome = None;
        let mut run = || {
            if let Some(closure) = closure.take() {
                outcome = Some(catch_unwind(AssertUnwindSafe(closure)));
            }
        };
        let restored = catch_unwind(AssertUnwindSafe(|| (self.0)(&mut run)));
        // Unless the hook has called it.
        run();
        match (outcome.expect("called above"), restored) {
            (Ok(value), Ok(())) => value,
            (Ok(value), Err(panic)) => {
                contain(|| drop(value));
                resume_unwind(panic)
            }
            (Err(panic), restored) => {
                restored.unwrap_or_else(abandon);
                resume_unwind(panic)
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn panic_of(f: impl FnOnce()) -> &'static str {
        let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("a panic");
        payload.downcast_ref::<&str>().expect("a text")
    }

    /// Runs a closure in a context whose hook is given. Returns how often it ran, and the panic that came out.
    fn run<R>(restore: R, panics: bool) -> (usize, Option<&'static str>)
    where
        R: Fn(&mut dyn FnMut()) + Clone + Send + Sync + 'static,
    {
        let hook = ContextHook::new(move || restore.clone());
        let mut runs = 0;
        let mut call = || {
            hook.capture().around(|| {
                runs += 1;
                assert!(!panics, "of the closure");
            });
        };
        let panic = match catch_unwind(AssertUnwindSafe(&mut call)) {
            Ok(()) => None,
            Err(payload) => Some(panic_of(|| resume_unwind(payload))),
        };
        (runs, panic)
    }

    #[test]
    fn the_closure_runs_once_whatever_the_hook_does() {
        assert_eq!(run(|run| run(), false), (1, None));
        assert_eq!(run(|_| (), false), (1, None));
        assert_eq!(run(|run| (0..3).for_each(|_| run()), false), (1, None));
        assert_eq!(run(|_| panic!("of the hook"), false), (1, Some("of the hook")));
    }

    #[test]
    fn the_panic_of_the_closure_comes_first() {
        assert_eq!(run(|run| run(), true), (1, Some("of the closure")));
        assert_eq!(run(|_| (), true), (1, Some("of the closure")));
        assert_eq!(run(|_| panic!("of the hook"), true), (1, Some("of the closure")));
        let after = |run: &mut dyn FnMut()| {
            run();
            panic!("of the hook");
        };
        assert_eq!(run(after, true), (1, Some("of the closure")));
        assert_eq!(run(after, false), (1, Some("of the hook")));
    }
}
