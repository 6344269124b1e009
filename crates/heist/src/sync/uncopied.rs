//! No copies of the process: a checker and a simulation do not fork. See `copied`.

type Handler = unsafe extern "C" fn();

pub(crate) fn copies() -> usize {
    0
}

pub(crate) fn is_left_behind(_pool: usize) -> bool {
    false
}

pub(crate) fn note_built(_pool: usize) {}

pub(crate) fn must_not_be_copied(_since: usize) {}

pub(crate) fn refuse_copy() -> ! {
    unreachable!("there are no copies")
}

pub(crate) fn watch_copies(_before: Handler, _after: Handler, _in_copy: Handler) {}

#[cfg(not(sim))]
pub(crate) fn lock_in_copy<T>(_mutex: &super::Mutex<T>) -> super::MutexGuard<'_, T> {
    unreachable!("there are no copies")
}
