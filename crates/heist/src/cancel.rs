//! `CancelToken`: requests cooperative cancellation.

use std::fmt;

use crate::order;
use crate::sync::{Arc, AtomicBool, Mutex, Weak, lock, unsize_arc};

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
    /// Keeps the nodes between this one and the first token: a cancellation comes along them, whether or not
    /// somebody still has those tokens.
    parent: Option<Arc<Node>>,
}

/// The followers to notify. Empty once the token is cancelled.
///
/// They are not kept alive: a token that is used for a long time may have had any number of children.
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

    /// Does what `cancel` does, except that it returns the followers that are to be notified in turn. So a
    /// long chain of tokens needs no stack.
    fn cancel_alone(&self) -> Vec<Weak<dyn Follower>> {
        self.cancel();
        Vec::new()
    }
}

impl Follower for Node {
    fn cancel(&self) {
        let mut next = self.cancel_alone();
        next.reverse();
        while let Some(follower) = next.pop() {
            if let Some(follower) = follower.upgrade() {
                next.extend(follower.cancel_alone().into_iter().rev());
            }
        }
    }

    fn cancel_alone(&self) -> Vec<Weak<dyn Follower>> {
        let mut followers = lock(&self.followers);
        // A look without the lock must see what was done before the cancellation.
        self.cancelled.store(true, order::cancel_publish());
        // They are notified without the lock: a follower may take a lock of its own, and may look at this
        // token.
        std::mem::take(&mut followers.list)
    }
}

impl Drop for Node {
    /// Drops the nodes above that nothing else refers to, one by one: a long chain needs no stack.
    fn drop(&mut self) {
        let mut parent = self.parent.take();
        while let Some(mut node) = parent.and_then(Arc::into_inner) {
            parent = node.parent.take();
        }
    }
}

impl CancelToken {
    /// Returns a token that is not cancelled.
    ///
    /// ```
    /// assert!(!heist::CancelToken::new().is_cancelled());
    /// ```
    pub fn new() -> Self {
        Self::with_parent(None)
    }

    fn with_parent(parent: Option<Arc<Node>>) -> Self {
        let followers = Mutex::new(Followers { list: Vec::new(), tidy_at: TIDY });
        Self(Arc::new(Node { cancelled: AtomicBool::new(false), followers, parent }))
    }

    /// Returns a token that is cancelled together with this one, or on its own.
    ///
    /// The child of a child is cancelled with the first token, too, even if the token between them was dropped.
    /// For that, a token keeps some memory for each of its ancestors.
    ///
    /// ```
    /// let parent = heist::CancelToken::new();
    /// parent.cancel();
    /// assert!(parent.child().is_cancelled());
    ///
    /// let first = heist::CancelToken::new();
    /// let third = first.child().child();
    /// first.cancel();
    /// assert!(third.is_cancelled());
    /// ```
    #[must_use]
    pub fn child(&self) -> Self {
        let child = Self::with_parent(Some(Arc::clone(&self.0)));
        let node: Arc<dyn Follower> = unsize_arc!(Arc::clone(&child.0));
        self.follow(&node);
        child
    }

    /// Cancels the token, its children and theirs. Has no effect if it is cancelled already.
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

    /// Returns a guard that cancels the token when it is dropped: at the end of a block, by an early return, by `?`, or by a
    /// panic.
    ///
    /// ```
    /// let token = heist::CancelToken::new();
    /// {
    ///     let _guard = token.clone().drop_guard();
    ///     assert!(!token.is_cancelled());
    /// }
    /// assert!(token.is_cancelled());
    /// ```
    pub fn drop_guard(self) -> CancelGuard {
        CancelGuard(Some(self))
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

/// Cancels a token when it is dropped: see [`CancelToken::drop_guard`].
///
/// ```
/// let token = heist::CancelToken::new();
/// drop(token.child().drop_guard());
/// assert!(!token.is_cancelled(), "only the child was cancelled");
/// ```
#[derive(Debug)]
#[must_use = "dropping it cancels the token"]
pub struct CancelGuard(Option<CancelToken>);

impl CancelGuard {
    /// Returns the token, which the guard no longer cancels.
    ///
    /// ```
    /// let guard = heist::CancelToken::new().drop_guard();
    /// let token = guard.disarm();
    /// assert!(!token.is_cancelled());
    /// ```
    pub fn disarm(mut self) -> CancelToken {
        self.0.take().expect("it is there until the guard is dropped")
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
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
