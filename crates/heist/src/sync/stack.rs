//! How far the stack of a thread reaches.

/// Returns the lowest address of the calling thread's stack, if the system tells.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn end_of_stack() -> Option<usize> {
    use std::mem::MaybeUninit;
    use std::ptr;

    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: it has no requirements.
    let me = unsafe { libc::pthread_self() };
    // SAFETY: the calling thread exists, and the call initializes the attributes if it succeeds.
    if unsafe { libc::pthread_getattr_np(me, attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: initialized by the call above.
    let mut attributes = unsafe { attributes.assume_init() };
    let (mut stack, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the attributes are initialized, and the results are written to two variables.
    let result = unsafe { libc::pthread_attr_getstack(&attributes, &mut stack, &mut size) };
    // SAFETY: initialized, and not used again.
    unsafe { libc::pthread_attr_destroy(&mut attributes) };
    (result == 0).then(|| stack.addr())
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn end_of_stack() -> Option<usize> {
    None
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn the_stack_ends_below_a_variable() {
        for size in [256 << 10, 4 << 20] {
            let thread = std::thread::Builder::new().stack_size(size).spawn(move || {
                let here = 0_u8;
                let left = (&raw const here).addr() - end_of_stack().expect("Linux tells");
                assert!(left > size / 2 && left < 2 * size, "{left} of {size}");
            });
            thread.expect("a thread").join().expect("no panic");
        }
    }
}
