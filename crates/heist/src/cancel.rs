//! `CancelToken`: requests cooperative cancellation.

use std::fmt;
use std::sync::Weak;

use crate::order;
use crate::sync::{Arc, AtomicBool, Mutex, lock};

/// Requests cooperative cancellation from all code that has a clone of it.
///
/// Clones are the same token. A [child](Self::child) is cancelled together with its parent, but not the other way
/// round.
///
/// ```
/// let all = heist::CancelToken::new();
/// let one = all.child();
/// one.cancel();
/// assert!(one.is_cancelled() && !all.is_cancelled());
///
/// let other = all.child();
/// all.cancel();
/// assert!(other.is_cancelled());
/// ```
#[derive(Clone)]
pub struct CancelToken(Arc<Node>);

struct Node {
    /// Set once, under the lock.
    cancelled: AtomicBool,
    followers: Mutex<Followers>,
}

/// The followers to notify. Empty once the token is cancelled.
struct Followers {
    list: Vec<Weak<dyn Follower>>,
    /// When the list has grown to this length, followers that are gone are removed.
    tidy_at: usize,
}

/// The shortest list from which followers are removed.
const TIDY: usize = 16;

/// Something that is notified of a cancellation, on the thread that cancels. It must neither panic nor wait.
pub(crate) trait Follower: Send + Sync {
    fn cancel(&self);
}

impl Follower for Node {
    fn cancel(&self) {
        let followers = {
            let mut followers = lock(&self.followers);
            // A look without the lock must see what was done before the cancellation.
            self.cancelled.store(true, order::cancel_publish());
            std::mem::take(&mut followers.list)
        };
        // Not under the lock: a follower may take a lock of its own, and may look at this token.
        followers.iter().filter_map(Weak::upgrade).for_each(|follower| follower.cancel());
    }
}

impl CancelToken {
    /// Returns a token that is not cancelled.
    ///
    /// ```
    /// assert!(!heist::CancelToken::new().is_cancelled());
    /// ```
    pub fn new() -> Self {
        let followers = Followers { list: Vec::new(), tidy_at: TIDY };
        Self(Arc::new(Node { cancelled: AtomicBool::new(false), followers: Mutex::new(followers) }))
    }

    /// Returns a token that is cancelled together with this one, or on its own.
    ///
    /// ```
    /// let parent = heist::CancelToken::new();
    /// parent.cancel();
    /// assert!(parent.child().is_cancelled());
    /// ```
    #[must_use]
    pub fn child(&self) -> Self {
        let child = Self::new();
        let node: Arc<dyn Follower> = Arc::clone(&child.0) as _;
        self.follow(&node);
        child
    }

    /// Cancels the token and its children. Has no effect if it is cancelled already.
    ///
    /// ```
    /// let token = heist::CancelToken::new();
    /// token.cancel();
    /// token.cancel();
    /// assert!(token.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Returns whether the token was cancelled. If so, the caller sees everything that was done before the
    /// cancellation.
    ///
    /// ```
    /// let token = heist::CancelToken::new();
    /// let worker = std::thread::spawn({
    ///     let token = token.clone();
    ///     move || while !token.is_cancelled() { std::thread::yield_now() }
    /// });
    /// token.cancel();
    /// worker.join().unwrap();
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(order::cancel_read())
    }

    /// Notifies the follower when the token is cancelled, or at once if it is.
    pub(crate) fn follow(&self, follower: &Arc<dyn Follower>) {
        let mut followers = lock(&self.0.followers);
        if self.is_cancelled() {
            drop(followers);
            return follower.cancel();
        }
        if followers.list.len() >= followers.tidy_at {
            followers.list.retain(|follower| follower.strong_count() > 0);
            followers.tidy_at = TIDY.max(2 * followers.list.len());
        }
        followers.list.push(Arc::downgrade(follower));
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("cancelled", &self.is_cancelled()).finish()
    }
}
