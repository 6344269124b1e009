//! Sleeping until a word changes: the system call on which the locks of `std` are built.

use crate::atomic::{AtomicU32, Ordering};
use crate::costs::Picos;
use crate::error::WaitsFor;
use crate::kernel::{self, Kernel, enter, suspend, take_turn};
use crate::report::Activity;

/// Sleeps until [`wake`], if the word has still the expected value; and until the moment that `until` returns for the present
/// one, if there is such a limit. Returns whether that moment has come.
///
/// # Panics
///
/// Panics outside of a simulation.
#[track_caller]
pub(crate) fn wait(
    word: &AtomicU32,
    expected: u32,
    waits_for: WaitsFor,
    until: impl FnOnce(Picos) -> Option<Picos>,
) -> bool {
    kernel::spend(Activity::SystemCall, |ticks| ticks.park_call);
    take_turn();
    // The system call looks at the word itself.
    if word.load(Ordering::Relaxed) != expected {
        return false;
    }
    let exit = enter(|kernel| {
        let current = kernel.current;
        kernel.sleepers.entry(address(word)).or_default().push_back(current);
        let until = until(kernel.now());
        kernel.block(waits_for, until)
    });
    suspend(exit.expect("a virtual lock is waited for inside of a simulation"));
    enter(|kernel| kernel.forget_sleeper(address(word))).unwrap_or(false)
}

/// Wakes up to `most` of the threads that sleep until the word changes, in the order in which they came.
pub(crate) fn wake(word: &AtomicU32, most: usize) {
    enter(|kernel| {
        let sleeping = kernel.sleepers.get(&address(word)).map_or(0, |sleepers| sleepers.len());
        for _ in 0..sleeping.min(most) {
            let next = kernel.sleepers.get_mut(&address(word)).and_then(|all| all.pop_front());
            kernel.wake(next.expect("counted above"));
        }
        if sleeping == 0 {
            // The system call finds nobody.
            let call = kernel.ticks.yield_call;
            kernel.spend(Activity::SystemCall, call);
        }
    });
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

impl Kernel {
    /// Removes the current thread from those that sleep. Returns whether it was among them: nobody has woken it.
    fn forget_sleeper(&mut self, address: usize) -> bool {
        let current = self.current;
        let Some(sleepers) = self.sleepers.get_mut(&address) else { return false };
        let before = sleepers.len();
        sleepers.retain(|&sleeper| sleeper != current);
        sleepers.len() < before
    }
}
