//! Loops whose closure can fail: `try_for_each` and `try_map`. They stop early.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use super::drive::{self, Work};
use super::places::{Made, Places, collect};
use super::stop::{End, search_first};
use super::{Enumerate, IntoPieces, Pieces, WithMinLen, enumerate, with_min_len};

/// Calls a closure for each item until it fails: until it returns `Err`, [`ControlFlow::Break`] or `None`.
///
/// Returns what the closure returned for the first item, in the order of the items, for which it failed; else `Ok(())`,
/// [`ControlFlow::Continue`] or `Some(())`. So the result is that of a sequential loop.
///
/// Once the closure has failed for an item, the threads only go on with items before it. Each thread looks before each item,
/// which costs next to nothing. So the closure is called for all items before the one whose failure is returned, and perhaps
/// for some after it.
///
/// ```
/// use heist::parallel;
///
/// let words = ["1", "2", "x", "4", "y"];
/// let failed = parallel::try_for_each(&words, |word| match word.parse::<u32>() {
///     Ok(_) => Ok(()),
///     Err(_) => Err(format!("not a number: {word}")),
/// });
/// assert_eq!(failed, Err(String::from("not a number: x")));
/// ```
///
/// With [`ControlFlow`], the loop returns a value:
///
/// ```
/// use heist::parallel;
/// use std::ops::ControlFlow::{Break, Continue};
///
/// let found = parallel::try_for_each(0..1_000_u32, |n| if n * n > 200 { Break(n) } else { Continue(()) });
/// assert_eq!(found, Break(15));
/// ```
pub fn try_for_each<I, F, R>(items: I, f: F) -> R
where
    I: IntoPieces,
    F: Fn(<I::Pieces as Pieces>::Item) -> R + Sync,
    R: Attempt + Send,
{
    with_min_len(1).try_for_each(items, f)
}

/// Calls a closure for each item and returns the results in the order of the items, or the first error.
///
/// It stops early, and returns the same error, as [`try_for_each`] does. The results before the error are dropped.
///
/// ```
/// use heist::parallel::try_map;
///
/// assert_eq!(try_map(&["1", "2"], |word| word.parse::<u32>()), Ok(vec![1, 2]));
/// assert!(try_map(&["1", "x"], |word| word.parse::<u32>()).is_err());
/// ```
pub fn try_map<I, F, R, E>(items: I, f: F) -> Result<Vec<R>, E>
where
    I: IntoPieces,
    F: Fn(<I::Pieces as Pieces>::Item) -> Result<R, E> + Sync,
    R: Send,
    E: Send,
{
    with_min_len(1).try_map(items, f)
}

impl WithMinLen {
    /// Like [`try_for_each`], with this minimum length.
    ///
    /// ```
    /// let loops = heist::parallel::with_min_len(2);
    /// assert_eq!(loops.try_for_each(0..9, |n| if n > 3 { Err(n) } else { Ok(()) }), Err(4));
    /// ```
    pub fn try_for_each<I, F, R>(self, items: I, f: F) -> R
    where
        I: IntoPieces,
        F: Fn(<I::Pieces as Pieces>::Item) -> R + Sync,
        R: Attempt + Send,
    {
        let failure = |item| Some(f(item)).filter(R::has_failed);
        search_first(items.into_pieces(), self.0, failure).unwrap_or_else(R::success)
    }

    /// Like [`try_map`], with this minimum length.
    ///
    /// ```
    /// let loops = heist::parallel::with_min_len(2);
    /// assert_eq!(loops.try_map(1..4_u32, |n| 6_u32.checked_div(n).ok_or("zero")), Ok(vec![6, 3, 2]));
    /// ```
    pub fn try_map<I, F, R, E>(self, items: I, f: F) -> Result<Vec<R>, E>
    where
        I: IntoPieces,
        F: Fn(<I::Pieces as Pieces>::Item) -> Result<R, E> + Sync,
        R: Send,
        E: Send,
    {
        let work = TryMap { end: End::new(), f, pieces: PhantomData };
        collect(enumerate(items), |places| match drive::run(&work, places, self.0) {
            (made, None) => Ok(made),
            (_, Some(error)) => Err(error),
        })
    }
}

/// What the closure of [`try_for_each`] returns: a `Result<(), E>`, a [`ControlFlow<B>`] or an `Option<()>`.
///
/// It cannot be implemented for other types.
///
/// ```
/// use heist::parallel::{Attempt, try_for_each};
///
/// /// Calls a closure for every second number.
/// fn try_even<R: Attempt + Send>(f: impl Fn(u32) -> R + Sync) -> R {
///     try_for_each(0..50_u32, |n| f(2 * n))
/// }
/// assert_eq!(try_even(|n| if n == 42 { Err(n) } else { Ok(()) }), Err(42));
/// assert_eq!(try_even(|n| (n < 100).then_some(())), Some(()));
/// ```
#[diagnostic::on_unimplemented(
    message = "the closure of `try_for_each` cannot return `{Self}`",
    label = "not a `Result<(), E>`, a `ControlFlow<B>` or an `Option<()>`",
    note = "end the closure with `Ok(())`, or use `try_map` if it returns other values"
)]
pub trait Attempt: Sized + private::Sealed {
    #[doc(hidden)]
    fn has_failed(&self) -> bool;

    #[doc(hidden)]
    fn success() -> Self;
}

mod private {
    use std::ops::ControlFlow;

    /// Keeps other crates from implementing [`Attempt`](super::Attempt), so that it can get other methods.
    pub trait Sealed {}

    impl<E> Sealed for Result<(), E> {}
    impl<B> Sealed for ControlFlow<B> {}
    impl Sealed for Option<()> {}
}

impl<E> Attempt for Result<(), E> {
    fn has_failed(&self) -> bool {
        self.is_err()
    }

    fn success() -> Self {
        Ok(())
    }
}

impl<B> Attempt for ControlFlow<B> {
    fn has_failed(&self) -> bool {
        self.is_break()
    }

    fn success() -> Self {
        ControlFlow::Continue(())
    }
}

impl Attempt for Option<()> {
    fn has_failed(&self) -> bool {
        self.is_none()
    }

    fn success() -> Self {
        Some(())
    }
}

/// A loop that makes a result of each item, up to the first error.
struct TryMap<P, R, F> {
    end: End,
    f: F,
    pieces: PhantomData<fn(P) -> R>,
}

impl<P, R, E, F> Work for TryMap<P, R, F>
where
    P: Pieces,
    R: Send,
    E: Send,
    F: Fn(P::Item) -> Result<R, E> + Sync,
{
    type Pieces = Places<Enumerate<P>, R>;
    /// The results before the first error, if nothing is left out between them, and that error.
    type Output = (Made<R>, Option<E>);

    fn each(&self, places: Places<Enumerate<P>, R>) -> Self::Output {
        let mut error = None;
        let made = places.fill(|(index, item)| {
            if self.end.is_before(index) {
                return None;
            }
            let result = (self.f)(item);
            result
                .map_err(|e| {
                    self.end.at(index);
                    error = Some(e);
                })
                .ok()
        });
        (made, error)
    }

    fn combine(&self, (left, first): Self::Output, (right, second): Self::Output) -> Self::Output {
        (left.and(right), first.or(second))
    }

    fn more(&self, done: Self::Output, places: Places<Enumerate<P>, R>) -> Self::Output {
        if done.1.is_some() { done } else { self.combine(done, self.each(places)) }
    }

    fn is_over(&self, left: &Places<Enumerate<P>, R>) -> bool {
        self.end.is_before(left.pieces().first())
    }
}
