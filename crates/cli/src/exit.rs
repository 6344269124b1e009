//! How a command ends: what the shell is told, and what the user is.

use std::any::Any;
use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use heist_bench::Refused;
use thiserror::Error;

use crate::{out, style};

/// What the shell is told. The help has the same list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, and every result was right.
    Done = 0,
    /// A result was wrong, or a task was lost or ran twice.
    Wrong = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// A file could not be read or written, or is not what it should be.
    File = 3,
    /// The system has refused something that is needed.
    System = 4,
    /// Ctrl-C, or a request to terminate. What was measured until then has been shown.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not do what it was asked: what, why, and what to do.
#[derive(Debug, Error)]
#[error("{what}: {why}\n  {advice}")]
pub(crate) struct Failure {
    /// [`Exit::Done`] ends the command in silence: nobody reads what it prints.
    pub(crate) exit: Exit,
    /// What could not be done.
    pub(crate) what: String,
    /// Why not.
    pub(crate) why: String,
    /// What to do about it.
    pub(crate) advice: String,
}

impl Failure {
    /// On stderr.
    pub(crate) fn tell(&self) -> Exit {
        if self.exit != Exit::Done {
            out::note(&format!("{} {self}", style::err().bad("heist:")));
        }
        self.exit
    }
}

pub(crate) type Outcome = Result<Exit, Failure>;

/// Runs what panics when a result is wrong, or when there is no pool. A panic of it, on whichever thread, prints nothing; the one that comes through is the
/// failure, with the first one if that is another: it may be the cause. With `RUST_BACKTRACE` set, panics print what they always
/// print.
pub(crate) fn guarded<T>(job: impl FnOnce() -> T) -> Result<T, Failure> {
    static HOOK: Once = Once::new();
    HOOK.call_once(keep_quiet);
    GUARDS.fetch_add(1, Ordering::Relaxed);
    let result = panic::catch_unwind(AssertUnwindSafe(job));
    GUARDS.fetch_sub(1, Ordering::Relaxed);
    result.map_err(|payload| match payload.downcast_ref() {
        Some(Refused(why)) => refused(why),
        None => wrong(panic_message(&*payload)),
    })
}

/// Of a pool that cannot be.
pub(crate) fn refused(why: &str) -> Failure {
    Failure {
        exit: Exit::System,
        what: "cannot start a pool".to_owned(),
        why: why.to_owned(),
        advice: "Nothing is known to be wrong with heist. `heist topo` shows what it was told, `ulimit -u` how many threads there may be."
            .to_owned(),
    }
}

/// How many calls of [`guarded`] there are just now.
static GUARDS: AtomicUsize = AtomicUsize::new(0);
/// The first panic of all and the last.
static PANICS: Mutex<Vec<Panic>> = Mutex::new(Vec::new());

/// Its message, and its place in the source.
type Panic = (String, String);

fn panics() -> MutexGuard<'static, Vec<Panic>> {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep_quiet() {
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

/// What a panic said, if that was a text.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic that says nothing")
}

/// What has come through, and what it may be the effect of.
fn why(message: &str, panics: &[Panic]) -> String {
    let told = |(message, place): &Panic| format!("{message} ({place})");
    let known = panics.iter().rfind(|(said, _)| said == message);
    let effect = known.map_or_else(|| message.to_owned(), told);
    match panics.first().filter(|(said, _)| said != message) {
        Some(cause) => format!("{}; then {effect}", told(cause)),
        None => effect,
    }
}

fn wrong(message: &str) -> Failure {
    let command: Vec<_> =
        env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    Failure {
        exit: Exit::Wrong,
        what: "a result is wrong, or heist is".to_owned(),
        why: why(message, &panics()),
        advice: format!(
            "Please report it, with this message and the command: heist {}",
            command.join(" ")
        )
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
    fn so_is_one_that_comes_from_another_thread() {
        let failure = guarded(|| {
            let thread = thread::spawn(|| panic!("lost"));
            thread.join().unwrap_or_else(|payload| resume_unwind(payload));
        })
        .unwrap_err();
        assert!(failure.why.contains("lost"), "{failure}");
    }

    #[test]
    fn a_pool_that_cannot_be_is_not_held_against_the_result() {
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
    fn what_does_not_panic_comes_through() {
        assert_eq!(guarded(|| 7).unwrap(), 7);
    }

    #[test]
    fn a_failure_says_what_why_and_what_to_do() {
        let failure =
            Failure { exit: Exit::File, what: "W".into(), why: "Y".into(), advice: "A".into() };
        assert_eq!(failure.to_string(), "W: Y\n  A");
        assert_eq!(failure.tell(), Exit::File);
    }
}
