//! How a command ends: its exit code, and what it tells the user.

use std::any::Any;
use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use heist_bench::Refused;
use thiserror::Error;

use crate::{out, style};

/// The exit code. The help has the same list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success: every result was verified.
    Done = 0,
    /// Verification failed: a result was wrong, or a task was lost or ran twice.
    Wrong = 1,
    /// The command line is invalid.
    Usage = 2,
    /// A file could not be read or written, or has the wrong contents.
    File = 3,
    /// The system refused a resource, such as a thread.
    System = 4,
    /// Ctrl-C or a termination signal. The results so far have been shown.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed, and what the user can do about it.
#[derive(Debug, Error)]
#[error("{what}: {why}\n  {advice}")]
pub(crate) struct Failure {
    /// The exit code. [`Exit::Done`] ends the command silently, because no process reads its output.
    pub(crate) exit: Exit,
    /// What failed.
    pub(crate) what: String,
    /// The cause.
    pub(crate) why: String,
    /// What the user can do.
    pub(crate) advice: String,
}

impl Failure {
    /// Prints the failure to stderr and returns the exit code.
    pub(crate) fn tell(&self) -> Exit {
        if self.exit != Exit::Done {
            out::note(&format!("{} {self}", style::err().bad("heist:")));
        }
        self.exit
    }
}

pub(crate) type Outcome = Result<Exit, Failure>;

/// Runs a closure that panics if a result is wrong or no pool can be built. Its panics print nothing, on
/// whichever thread they happen. The panic that arrives here becomes the failure. The first panic of all is
/// reported as well if it is another one, because it may be the cause. With `RUST_BACKTRACE` set, panics
/// print as usual.
pub(crate) fn guarded<T>(job: impl FnOnce() -> T) -> Result<T, Failure> {
    static HOOK: Once = Once::new();
    HOOK.call_once(install_hook);
    GUARDS.fetch_add(1, Ordering::Relaxed);
    let result = panic::catch_unwind(AssertUnwindSafe(job));
    GUARDS.fetch_sub(1, Ordering::Relaxed);
    result.map_err(|payload| match payload.downcast_ref() {
        Some(Refused(why)) => refused(why),
        None => wrong(panic_message(&*payload)),
    })
}

/// Returns the failure for a pool that could not be started.
pub(crate) fn refused(why: &str) -> Failure {
    Failure {
        exit: Exit::System,
        what: "cannot start a pool".to_owned(),
        why: why.to_owned(),
        advice: "This does not indicate an error in heist. `heist topo` shows the settings, `ulimit -u` the limit on threads."
            .to_owned(),
    }
}

/// The number of running calls of [`guarded`].
static GUARDS: AtomicUsize = AtomicUsize::new(0);
/// The first panic and the last one.
static PANICS: Mutex<Vec<Panic>> = Mutex::new(Vec::new());

/// The message of a panic, and its place in the source.
type Panic = (String, String);

fn panics() -> MutexGuard<'static, Vec<Panic>> {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn install_hook() {
    let loud = env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let place = panic
            .location()
            .map_or_else(String::new, |place| format!("{}:{}", place.file(), place.line()));
        let message = panic_message(panic.payload()).to_owned();
        let mut panics = panics();
        panics.truncate(1);
        panics.push((message, place));
        drop(panics);
        if loud || GUARDS.load(Ordering::Relaxed) == 0 {
            before(panic);
        }
    }));
}

/// Returns the message of a panic if it is a text.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

/// Describes the panic that arrived, after the first one if that may be its cause.
fn why(message: &str, panics: &[Panic]) -> String {
    let described = |(message, place): &Panic| format!("{message} ({place})");
    let known = panics.iter().rfind(|(said, _)| said == message);
    let effect = known.map_or_else(|| message.to_owned(), described);
    match panics.first().filter(|(said, _)| said != message) {
        Some(cause) => format!("{}; then {effect}", described(cause)),
        None => effect,
    }
}

fn wrong(message: &str) -> Failure {
    let command: Vec<_> =
        env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    Failure {
        exit: Exit::Wrong,
        what: "verification failed: the result differs from the expected one".to_owned(),
        why: why(message, &panics()),
        advice: format!("Please report this message and the command: heist {}", command.join(" "))
            .trim_end()
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;
    use std::thread;

    use super::*;

    #[test]
    fn a_guarded_panic_is_a_failure_with_message_and_place() {
        let failure = guarded(|| assert_eq!(1 + 1, 3, "the sum of {}", "ones")).unwrap_err();
        assert_eq!(failure.exit, Exit::Wrong);
        assert!(failure.why.contains("the sum of ones"), "{failure}");
        assert!(failure.advice.contains("report"), "{failure}");
    }

    #[test]
    fn a_panic_of_another_thread_is_a_failure() {
        let failure = guarded(|| {
            let thread = thread::spawn(|| panic!("lost"));
            thread.join().unwrap_or_else(|payload| resume_unwind(payload));
        })
        .unwrap_err();
        assert!(failure.why.contains("lost"), "{failure}");
    }

    #[test]
    fn a_pool_that_cannot_start_is_no_wrong_result() {
        let failure = guarded(|| panic::panic_any(Refused("no room".into()))).unwrap_err();
        assert_eq!((failure.exit, failure.why.as_str()), (Exit::System, "no room"));
    }

    #[test]
    fn the_cause_comes_before_the_effect() {
        let panics = [("lost".into(), "a.rs:1".into()), ("no answer".into(), "b.rs:2".into())];
        assert_eq!(why("no answer", &panics), "lost (a.rs:1); then no answer (b.rs:2)");
        assert_eq!(why("lost", &panics), "lost (a.rs:1)");
        assert_eq!(why("between", &panics), "lost (a.rs:1); then between");
        assert_eq!(why("resumed", &[]), "resumed");
    }

    #[test]
    fn the_value_is_returned() {
        assert_eq!(guarded(|| 7).unwrap(), 7);
    }

    #[test]
    fn a_failure_has_a_cause_and_advice() {
        let failure =
            Failure { exit: Exit::File, what: "W".into(), why: "Y".into(), advice: "A".into() };
        assert_eq!(failure.to_string(), "W: Y\n  A");
        assert_eq!(failure.tell(), Exit::File);
    }
}
