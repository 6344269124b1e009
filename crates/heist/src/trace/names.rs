//! The names of tasks: each has a number, which fits into an event.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::sync::{Mutex, lock};

/// The number of a task that has no name.
const NO_NAME: u32 = 0;

/// The names that the threads of a pool have used.
#[derive(Default)]
pub(super) struct Names(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The name with number `n` is at `n - 1`.
    list: Vec<&'static str>,
    numbers: HashMap<&'static str, u32>,
}

impl Names {
    /// Returns the number of a name.
    fn number(&self, name: &'static str) -> u32 {
        let mut known = lock(&self.0);
        if let Some(&number) = known.numbers.get(name) {
            return number;
        }
        let Ok(number) = u32::try_from(known.list.len() + 1) else { return NO_NAME };
        known.list.push(name);
        known.numbers.insert(name, number);
        number
    }

    /// Returns all names, for [`name_of`].
    pub(super) fn read(&self) -> Vec<&'static str> {
        lock(&self.0).list.clone()
    }
}

/// Returns the name with that number. It is among the names that were read after the number was.
pub(super) fn name_of(names: &[&'static str], number: u32) -> Option<&'static str> {
    names.get((number as usize).checked_sub(1)?).copied()
}

/// The numbers of the names that a thread has used, so that it seldom takes the lock. A name is known by its address and its
/// length; the same name may have several addresses.
#[derive(Default)]
pub(super) struct NameCache(RefCell<HashMap<(usize, usize), u32>>);

impl NameCache {
    pub(super) fn number(&self, name: &'static str, names: &Names) -> u32 {
        let key = (name.as_ptr().addr(), name.len());
        *self.0.borrow_mut().entry(key).or_insert_with(|| names.number(name))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let (names, cache, other) = (Names::default(), NameCache::default(), NameCache::default());
        let copy: &'static str = Box::leak(Box::from("one"));
        let numbers = ["one", "two", "one", copy].map(|name| cache.number(name, &names));
        assert_eq!(numbers, [1, 2, 1, 1]);
        assert_eq!(other.number("two", &names), 2);
        let list = names.read();
        assert_eq!([0, 1, 2, 3].map(|n| name_of(&list, n)), [None, Some("one"), Some("two"), None]);
    }
}
