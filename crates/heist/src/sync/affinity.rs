//! The affinity mask of a thread: the processors on which the system may run it. Linux and Android have such a mask. On
//! other systems, in a model checker and in a simulation, every call fails as unsupported.

use std::io;

use super::ThreadBuilder;

/// The number of processors that one word of a mask stands for.
const BITS: usize = usize::BITS as usize;

/// A set of processors in the form in which the system takes it: a bit for each.
#[derive(Debug, Clone)]
pub(crate) struct Mask(Box<[usize]>);

impl Mask {
    /// Returns the mask of the calling thread. Threads that it starts inherit that mask.
    pub(crate) fn of_thread() -> io::Result<Self> {
        system::get().map(Self)
    }

    /// Returns the mask with this processor only.
    pub(crate) fn only(processor: usize) -> Self {
        let mut words = vec![0; processor / BITS + 1];
        words[processor / BITS] = 1 << (processor % BITS);
        Self(words.into_boxed_slice())
    }

    /// Returns the numbers of the processors, in ascending order.
    pub(crate) fn processors(&self) -> impl Iterator<Item = usize> {
        let is_set = |processor: &usize| self.0[processor / BITS] >> (processor % BITS) & 1 == 1;
        (0..self.0.len() * BITS).filter(is_set)
    }

    /// Lets the calling thread run on these processors only. The thread is on one of them when this returns.
    pub(crate) fn apply(&self) -> io::Result<()> {
        system::set(&self.0)
    }

    /// Returns whether the system lets a thread of this process choose these processors. A thread of its own tries it, so
    /// that nothing changes for the caller.
    pub(crate) fn try_out(&self) -> io::Result<()> {
        let mask = self.clone();
        let thread =
            ThreadBuilder::new().name("heist-pin".to_owned()).spawn(move || mask.apply())?;
        thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    }
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(any(loom, shuttle, sim))))]
mod system {
    use std::io;

    /// The system refuses a mask that is shorter than its own. This many words are enough for 65,536 processors, which is
    /// more than any kernel supports.
    const MOST_WORDS: usize = (1 << 16) / usize::BITS as usize;

    /// As many as the standard C library has: enough for 1,024 processors.
    const FIRST_WORDS: usize = 1024 / usize::BITS as usize;

    pub(super) fn get() -> io::Result<Box<[usize]>> {
        let mut words = vec![0_usize; FIRST_WORDS];
        loop {
            // SAFETY: the call writes at most as many bytes as it is told, to memory that is that long and that this
            // function owns. The kernel's masks are arrays of words as long as a pointer, which is how they are aligned
            // here. Zero stands for the calling thread.
            let failed = unsafe {
                libc::sched_getaffinity(0, size_of_val(&*words), words.as_mut_ptr().cast())
            };
            if failed == 0 {
                return Ok(words.into_boxed_slice());
            }
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINVAL) || words.len() >= MOST_WORDS {
                return Err(error);
            }
            words = vec![0; words.len() * 2];
        }
    }

    pub(super) fn set(words: &[usize]) -> io::Result<()> {
        // SAFETY: the call reads as many bytes as it is told, from a slice of that size, aligned as the kernel's masks are.
        // Processors beyond its end are not in the mask. Zero stands for the calling thread.
        let failed =
            unsafe { libc::sched_setaffinity(0, size_of_val(words), words.as_ptr().cast()) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(any(loom, shuttle, sim)))))]
mod system {
    use std::io;

    pub(super) fn get() -> io::Result<Box<[usize]>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn set(_: &[usize]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_mask_of_one_processor_has_that_processor() {
        for processor in [0, 1, 63, 64, 65, 1023, 4096] {
            assert_eq!(Mask::only(processor).processors().collect::<Vec<_>>(), [processor]);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_mask_of_this_thread_can_be_tried_out() {
        let mask = Mask::of_thread().expect("a mask");
        assert!(mask.processors().count() > 0);
        mask.try_out().expect("a thread has its own mask already");
    }
}
