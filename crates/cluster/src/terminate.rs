//! The signal that has a worker finish what it has started and end.

#[cfg(unix)]
pub(crate) use unix::{Terminate, requested};

/// On this system, only [`Cluster::drain`](crate::Cluster::drain) drains a worker.
#[cfg(not(unix))]
pub(crate) struct Terminate;

#[cfg(not(unix))]
impl Terminate {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self)
    }
}

#[cfg(not(unix))]
pub(crate) fn requested() -> bool {
    false
}

#[cfg(unix)]
mod unix {
    #![allow(unsafe_code, reason = "tokio takes the signal for the rest of the process")]

    use std::io;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, PoisonError};

    /// Whether the signal has come while a worker has served. It is for the process, so nothing resets it.
    static REQUESTED: AtomicBool = AtomicBool::new(false);
    /// How many calls serve, and what the signal does otherwise. Only `Terminate` uses it.
    static SERVING: Mutex<Serving> = Mutex::new(Serving { calls: 0, earlier: None });

    struct Serving {
        calls: usize,
        earlier: Option<libc::sigaction>,
    }

    /// As long as it exists, SIGTERM does not end the process. After that, it does what it did before.
    pub(crate) struct Terminate(());

    impl Terminate {
        pub(crate) fn new() -> io::Result<Self> {
            let mut serving = SERVING.lock().unwrap_or_else(PoisonError::into_inner);
            if serving.calls == 0 {
                // SAFETY: all bits zero is a valid value of this type of C: no flags, no signals that are blocked.
                let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
                action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
                // System calls that were interrupted are made again.
                action.sa_flags = libc::SA_RESTART;
                serving.earlier = Some(exchange(&action)?);
            }
            serving.calls += 1;
            Ok(Self(()))
        }
    }

    impl Drop for Terminate {
        fn drop(&mut self) {
            let mut serving = SERVING.lock().unwrap_or_else(PoisonError::into_inner);
            serving.calls -= 1;
            if serving.calls == 0
                && let Some(earlier) = serving.earlier.take()
            {
                // The action was accepted before.
                let _ = exchange(&earlier);
            }
        }
    }

    /// Returns whether the signal has come while a worker has served.
    pub(crate) fn requested() -> bool {
        REQUESTED.load(Ordering::SeqCst)
    }

    /// What the signal does while a worker serves. A store to an atomic variable may be done in a handler.
    extern "C" fn note(_signal: libc::c_int) {
        REQUESTED.store(true, Ordering::SeqCst);
    }

    /// Sets what SIGTERM does, and returns what it did.
    fn exchange(action: &libc::sigaction) -> io::Result<libc::sigaction> {
        let mut earlier = MaybeUninit::zeroed();
        // SAFETY: both pointers are valid for the call. The handler is `note`, or what the process had before.
        let done =
            unsafe { libc::sigaction(libc::SIGTERM, ptr::from_ref(action), earlier.as_mut_ptr()) };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has succeeded, so it has written the value.
        Ok(unsafe { earlier.assume_init() })
    }
}
