//! How far a run is: what the functions of [`Pipeline::progress`] are shown, and when.

use std::fmt;
use std::time::Duration;

use super::Pipeline;
use super::source::Source;
use crate::panic::contain;
use crate::sync::{Instant, Mutex, lock};

/// The functions are called no sooner than this after their last call, but for the last one.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);

/// How far a run is. See [`Pipeline::progress`].
///
/// ```
/// use heist::pipeline::{Pipeline, Progress};
///
/// let show = |progress: &Progress| match progress.remaining() {
///     Some(left) => println!("{} items, {:.0} in a second, {left:.0?} left", progress.items, progress.rate()),
///     None => println!("{} items", progress.items),
/// };
/// let pool = heist::Pool::builder().workers(2).build()?;
/// Pipeline::new(0..1000).progress(show).run(&pool, |_| ())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Items of the source whose results have been delivered, or that have none. A batch counts when all its results have been
    /// delivered.
    pub items: u64,
    /// How many items there are at most, if the source knows that: the upper bound of the iterator's
    /// [`size_hint`](Iterator::size_hint).
    pub total: Option<u64>,
    /// Results that were delivered.
    pub results: u64,
    /// The time since the start of the run.
    pub elapsed: Duration,
    /// Whether the run has ended. This is the last call then.
    pub is_over: bool,
    /// Whether the run has ended before all items were processed: an error has ended it, or its
    /// [results](super::Results) were dropped.
    pub failed: bool,
}

impl Progress {
    /// Returns how many items a second were processed since the start.
    ///
    /// ```
    /// use heist::pipeline::{Pipeline, Progress};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let check = |progress: &Progress| assert!(progress.rate() > 0.0 || progress.items == 0);
    /// Pipeline::new(0..1000).progress(check).run(&pool, |_| ())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds == 0.0 { 0.0 } else { self.items as f64 / seconds }
    }

    /// Estimates how long the run will go on, if all items take as long as those so far. Returns `None` if that is not known.
    ///
    /// ```
    /// use std::time::Duration;
    /// use heist::pipeline::{Pipeline, Progress};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let check = |progress: &Progress| if progress.is_over { assert_eq!(progress.remaining(), Some(Duration::ZERO)) };
    /// Pipeline::new(0..1000).progress(check).run(&pool, |_| ())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remaining(&self) -> Option<Duration> {
        if self.is_over {
            return Some(Duration::ZERO);
        }
        let (left, rate) = (self.total?.saturating_sub(self.items), self.rate());
        Duration::try_from_secs_f64(left as f64 / rate).ok()
    }
}

type Function = Box<dyn FnMut(&Progress) + Send>;

/// A function of the user that is shown the progress. It is dropped without a panic. The settings of a run are shared, but only the
/// consumer locks it.
pub(super) struct Hook(Mutex<Option<Function>>);

impl Drop for Hook {
    fn drop(&mut self) {
        let function = lock(&self.0).take();
        contain(|| drop(function));
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").finish_non_exhaustive()
    }
}

/// Counts what was delivered, and shows it to the functions. The consumer has it.
pub(crate) struct Meter {
    hooks: Vec<Hook>,
    started: Instant,
    /// The functions are called when so much time has passed since the start.
    next: Duration,
    progress: Progress,
}

impl Meter {
    /// Returns `None` if there is nothing to call. Then the `total` is not asked for.
    pub(super) fn new(hooks: Vec<Hook>, total: impl FnOnce() -> Option<u64>) -> Option<Box<Self>> {
        if hooks.is_empty() {
            return None;
        }
        let progress = Progress { total: total(), ..Progress::default() };
        Some(Box::new(Self { hooks, started: Instant::now(), next: INTERVAL, progress }))
    }

    /// Counts a batch that was delivered.
    pub(super) fn count(&mut self, items: usize, results: usize) {
        self.progress.items += items as u64;
        self.progress.results += results as u64;
        self.tick();
    }

    /// Calls the functions if it is time.
    pub(super) fn tick(&mut self) {
        let elapsed = self.started.elapsed();
        if elapsed >= self.next {
            self.show(elapsed);
        }
    }

    /// Calls the functions for the last time.
    pub(super) fn finish(&mut self, failed: bool) {
        if !self.progress.is_over {
            (self.progress.is_over, self.progress.failed) = (true, failed);
            self.show(self.started.elapsed());
        }
    }

    fn show(&mut self, elapsed: Duration) {
        self.progress.elapsed = elapsed;
        self.next = elapsed.saturating_add(INTERVAL);
        for hook in &self.hooks {
            if let Some(function) = lock(&hook.0).as_mut() {
                contain(|| function(&self.progress));
            }
        }
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Has the function shown how far the run is: ten times a second at most, and once at the end, however that comes.
    ///
    /// The thread that gets the results calls it: the one that has called [`run`](Self::run), also while it waits for results, or
    /// the one that uses the [iterator](Self::results). So it is not called while a sink takes its time. A panic of the function
    /// ends there. If `progress` is called again, both functions are called.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // A long import that says how far it is.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let rows = (0..5000).map(|n| format!("{n};{}", n % 12));
    /// let mut imported = 0;
    /// Pipeline::new(rows)
    ///     .filter(|row| !row.ends_with(";0"))
    ///     .progress(|p| eprintln!("{} of {} rows, {:.0} rows/s", p.items, p.total.unwrap_or(0), p.rate()))
    ///     .run(&pool, |_row| imported += 1)?;
    /// assert_eq!(imported, 4583);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn progress(mut self, function: impl FnMut(&Progress) + Send + 'static) -> Self {
        self.config.progress.push(Hook(Mutex::new(Some(Box::new(function)))));
        self
    }

    /// Shows the progress with a bar of [indicatif](https://docs.rs/indicatif), with the feature `indicatif`.
    ///
    /// The bar gets the length of the source, if that is known, and the number of processed items as its position. It is finished
    /// at the end of the run, or abandoned if that has failed.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    /// use indicatif::ProgressBar;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let bar = ProgressBar::new_spinner().with_message("resizing pictures");
    /// Pipeline::new(0..200).map(|n| n * n).progress_bar(bar.clone()).run(&pool, |_| ())?;
    /// assert!(bar.is_finished());
    /// assert_eq!((bar.position(), bar.length()), (200, Some(200)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "indicatif")]
    pub fn progress_bar(self, bar: indicatif::ProgressBar) -> Self {
        self.progress(move |progress| {
            if let Some(total) = progress.total.filter(|total| bar.length() != Some(*total)) {
                bar.set_length(total);
            }
            bar.set_position(progress.items);
            match (progress.is_over, progress.failed) {
                (true, true) => bar.abandon(),
                (true, false) => bar.finish(),
                (false, _) => {}
            }
        })
    }
}
