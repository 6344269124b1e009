//! The parts of a pipeline that something else than a pool runs: its batches as they are cut, and its stages.
//!
//! For heist-cluster. Nothing here has a promise of compatibility.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Batcher, Source};
use crate::api::pool::Pool;
use crate::cancel::{CancelToken, Follower};
use crate::panic::{abandon, contain_each, drop_each};
use crate::pipeline::Pipeline;
use crate::pipeline::control::{AfterPull, Control, Grant, Rules};
use crate::pipeline::error::{At, PipelineError};
use crate::pipeline::steps::{Context, Counts, Discarded, Steps};
use crate::sync::{Arc, unsize_arc};

/// What a pipeline consists of.
#[doc(hidden)]
pub struct Parts<S: Source, G> {
    /// The batches of the source.
    pub batches: Batches<S>,
    /// The stages.
    pub stages: Stages<G>,
    /// The largest number of batches in flight, if the user has set it.
    pub in_flight: Option<usize>,
    /// Whether results are delivered in order.
    pub ordered: bool,
    /// The token that cancels the run.
    pub token: Option<CancelToken>,
}

impl<S: Source, G> fmt::Debug for Parts<S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("ordered", &self.ordered).finish_non_exhaustive()
    }
}

/// Cuts the source into batches.
#[doc(hidden)]
pub struct Batches<S: Source> {
    /// It is there until the batches are dropped.
    batcher: Option<Batcher<S>>,
    /// The number of the next batch.
    next: u64,
    ended: bool,
    /// The source has failed after the items of the last batch.
    failure: Option<PipelineError>,
}

impl<S: Source> fmt::Debug for Batches<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("next", &self.next).finish_non_exhaustive()
    }
}

/// What the source yields next.
#[doc(hidden)]
#[derive(Debug)]
pub enum Cut<T> {
    /// A batch, which is not empty.
    Batch(Numbered<T>),
    /// There are no items at the moment, because senders have sent none.
    Pending,
    /// There are no more items.
    End,
}

/// A batch, and where its items come from.
#[doc(hidden)]
#[derive(Debug)]
pub struct Numbered<T> {
    /// The number of the batch, counted from 0.
    pub number: u64,
    /// The index in the source of the first item.
    pub first: u64,
    /// The items.
    pub items: Vec<T>,
}

impl<S: Source> Batches<S> {
    /// Cuts the next batch. Takes no further item once it is to `stop`.
    ///
    /// # Errors
    ///
    /// Returns the error or the panic of the source. The batches before it are whole.
    pub fn cut(&mut self, stop: &impl Fn() -> bool) -> Result<Cut<S::Item>, PipelineError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let Some(batcher) = self.batcher.as_mut().filter(|_| !self.ended) else {
            return Ok(Cut::End);
        };
        let number = self.next;
        let mut items = Vec::new();
        let mut grant = Grant {
            batches: 1,
            weight: u64::MAX,
            taken: 0,
            nothing_in_flight: true,
            next_batch: number,
        };
        let outcome = batcher.cut(&mut items, &mut grant, stop);
        let first = batcher.count(items.len());
        let (after, _) = outcome.into_after_pull(number, first + items.len() as u64);
        self.ended = matches!(after, AfterPull::End | AfterPull::Failed(_));
        match after {
            AfterPull::Failed(error) if items.is_empty() => return Err(error),
            AfterPull::Failed(error) => self.failure = Some(error),
            AfterPull::Pending if items.is_empty() => return Ok(Cut::Pending),
            AfterPull::More | AfterPull::Pending | AfterPull::End => {}
        }
        if items.is_empty() {
            // The source has ended, or the caller was to stop before the first item.
            return Ok(Cut::End);
        }
        self.next += 1;
        Ok(Cut::Batch(Numbered { number, first, items }))
    }
}

impl<S: Source> Drop for Batches<S> {
    fn drop(&mut self) {
        if let Some(batcher) = self.batcher.take() {
            batcher.drop_each();
        }
    }
}

/// The stages of a pipeline.
#[doc(hidden)]
pub struct Stages<G>(G);

impl<G> fmt::Debug for Stages<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stages").finish_non_exhaustive()
    }
}

impl<G> Stages<G> {
    /// Applies the stages to a batch on the calling thread, a worker of the pool, until the token is cancelled. `state` is what
    /// the stages keep from batch to batch. It is made anew after a panic.
    ///
    /// # Errors
    ///
    /// Returns the error or the panic of a stage with its number, or [`PipelineError::Cancelled`] if the token was cancelled.
    pub fn apply<T>(
        &self,
        pool: &Pool,
        token: &CancelToken,
        state: &mut G::State,
        batch: Numbered<T>,
    ) -> Result<Applied<G::Out>, PipelineError>
    where
        G: Steps<T>,
    {
        let Numbered { number, first, mut items } = batch;
        let control = control_of_batch(pool);
        let on_cancel: Arc<dyn Follower> = unsize_arc!(Arc::new(DiscardAll(Arc::clone(&control))));
        token.follow(&on_cancel);
        let context = Context::new(&control, number, first, None);
        let mut results = Vec::with_capacity(items.len());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut out = |result| {
                results.push(result);
                context.check()
            };
            if G::TRACKS {
                self.0.apply::<true>(state, &mut items, &context, &mut out)
            } else {
                self.0.apply::<false>(state, &mut items, &context, &mut out)
            }
        }));
        if outcome.is_err() {
            *state = G::State::default();
        }
        let (stage, at) = (context.failed_stage(), At { batch: number, item: context.item() });
        // What the stages have left in the batch.
        let dropped = drop_each(items);
        let error = match (outcome, dropped) {
            (Ok(Ok(())), Ok(())) => {
                let Counts { skipped, retried, .. } = context.counts();
                return Ok(Applied { results, skipped, retried });
            }
            (Ok(Ok(())), Err(payload)) => PipelineError::panicked(stage, at, payload),
            (Ok(Err(error)), dropped) => {
                dropped.unwrap_or_else(abandon);
                if error.is::<Discarded>() {
                    PipelineError::cancelled()
                } else {
                    PipelineError::failed(stage, at, error)
                }
            }
            (Err(payload), dropped) => {
                dropped.unwrap_or_else(abandon);
                PipelineError::panicked(stage, at, payload)
            }
        };
        contain_each(results);
        Err(error)
    }
}

/// What the stages have made of a batch.
#[doc(hidden)]
#[derive(Debug)]
pub struct Applied<U> {
    /// The results.
    pub results: Vec<U>,
    /// Items that have failed and were left out.
    pub skipped: u64,
    /// Calls that were repeated because they had failed.
    pub retried: u64,
}

/// Makes what a batch asks whether its results are wanted, where it waits, and where it counts errors. Nothing is pulled from a
/// source and no task is started, so it needs no more than that.
fn control_of_batch(pool: &Pool) -> Arc<Control> {
    let rules = Rules {
        max_batches: 1,
        max_weight: None,
        ordered: false,
        workers_pull: true,
        steals: false,
    };
    Control::new(rules, pool.any_pool()).0
}

/// Has the stages stop, and ends their pauses.
struct DiscardAll(Arc<Control>);

impl Follower for DiscardAll {
    fn cancel(&self) {
        // There is no factory, so this drops no code of the user.
        let _ = self.0.close();
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Takes the pipeline apart, for heist-cluster. The distribution and the limit of the weight are not used. (A function that
    /// weighs items is called, and its panic is one of the source.)
    ///
    /// # Errors
    ///
    /// Returns a [`PipelineError`] if the settings are invalid, or if there are stages that need the memory of one process.
    #[doc(hidden)]
    pub fn into_parts(self) -> Result<Parts<S, G>, PipelineError>
    where
        G: Steps<S::Item>,
    {
        self.config.check()?;
        if G::SECTIONS > 0 {
            return Err(PipelineError::NotOnCluster);
        }
        let Self { source, steps, config } = self;
        let batcher = Some(Batcher::new(source, config.batch));
        Ok(Parts {
            batches: Batches { batcher, next: 0, ended: false, failure: None },
            stages: Stages(steps),
            in_flight: config.in_flight,
            ordered: config.ordered,
            token: config.token,
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle, sim))))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pipeline::{Retry, Skip, Stage};

    /// Cuts all batches: the numbers and the items of each.
    fn cut_all<S: Source>(batches: &mut Batches<S>) -> Vec<(u64, u64, Vec<S::Item>)> {
        let cut = || match batches.cut(&|| false) {
            Ok(Cut::Batch(Numbered { number, first, items })) => Some((number, first, items)),
            _ => None,
        };
        std::iter::from_fn(cut).collect()
    }

    fn numbered<T>(number: u64, first: u64, items: Vec<T>) -> Numbered<T> {
        Numbered { number, first, items }
    }

    fn pool() -> Pool {
        Pool::builder().workers(1).build().expect("a pool")
    }

    #[test]
    fn a_source_is_cut_and_the_stages_name_what_fails() {
        let pipeline = Pipeline::new(0..5).batch(2).map(|n| n + 1).try_map(|n| match n {
            4 => Err("four"),
            n => Ok(n),
        });
        let Parts { mut batches, stages, .. } = pipeline.into_parts().expect("valid settings");
        assert_eq!(
            cut_all(&mut batches),
            [(0, 0, vec![0, 1]), (1, 2, vec![2, 3]), (2, 4, vec![4])]
        );
        let (pool, token) = (pool(), CancelToken::new());
        let apply = |batch| stages.apply(&pool, &token, &mut Default::default(), batch);
        let applied = apply(numbered(0, 0, vec![0, 1])).expect("no error");
        assert_eq!(applied.results, [1, 2]);
        let error = apply(numbered(1, 2, vec![2, 3])).expect_err("four fails");
        assert_eq!((error.stage(), error.batch()), (Some(Stage::Step(2)), Some(1)));
        assert_eq!(error.item(), Some(3));
        token.cancel();
        let unwanted = apply(numbered(2, 4, vec![5, 6]));
        assert!(matches!(unwanted, Err(PipelineError::Cancelled { .. })));
    }

    #[test]
    fn a_source_fails_after_its_last_batch() {
        let failing = (0..5).inspect(|n| assert!(*n < 3, "three"));
        let parts = Pipeline::new(failing).batch(2).into_parts();
        let Parts { mut batches, .. } = parts.expect("valid settings");
        let mut cut = || batches.cut(&|| false);
        assert!(matches!(cut(), Ok(Cut::Batch(Numbered { number: 0, first: 0, .. }))));
        assert!(matches!(cut(), Ok(Cut::Batch(Numbered { number: 1, first: 2, .. }))));
        let error = cut().expect_err("the panic of the source");
        assert_eq!((error.batch(), error.item()), (Some(1), Some(3)));
        assert!(matches!(cut(), Ok(Cut::End)));
    }

    #[test]
    fn stages_expand_filter_keep_state_and_have_policies() {
        let seen = |count: &mut u32, n: u32| {
            *count += 1;
            (n, *count)
        };
        let pipeline = Pipeline::new(0..6_u32)
            .flat_map(|n| [n, n + 10])
            .filter(|n| n % 2 == 0)
            .try_map(|n| if n == 12 { Err("twelve") } else { Ok(n) })
            .on_error(Retry::times(2))
            .on_error(Skip)
            .map_init(|| 0, seen);
        let Parts { stages, .. } = pipeline.into_parts().expect("valid settings");
        let (pool, token, mut state) = (pool(), CancelToken::new(), Default::default());
        let first = stages.apply(&pool, &token, &mut state, numbered(0, 0, vec![0, 1, 2]));
        let first = first.expect("no error");
        assert_eq!(first.results, [(0, 1), (10, 2), (2, 3)]);
        assert_eq!((first.skipped, first.retried), (1, 2));
        let second = stages.apply(&pool, &token, &mut state, numbered(1, 3, vec![3, 4]));
        let second = second.expect("no error");
        assert_eq!(second.results, [(4, 4), (14, 5)]);
        assert_eq!((second.skipped, second.retried), (0, 0));
    }

    /// Several processes cannot share a queue of a section.
    #[test]
    fn sections_are_not_taken_apart() {
        let limited = Pipeline::new(0..5).limit_workers(1, |stages| stages.map(|n| n)).map(|n| n);
        let grouped = Pipeline::new(0..5).group_by_key(1, |n| *n, |group| group).map_batch(|_| ());
        let [limited, grouped] = [limited.into_parts().err(), grouped.into_parts().err()];
        for error in [limited, grouped] {
            let error = error.expect("a section");
            assert!(matches!(error, PipelineError::NotOnCluster), "{error}");
            assert!(error.to_string().contains("on a pool"));
        }
    }

    #[test]
    fn a_cancelled_token_ends_a_pause() {
        let token = CancelToken::new();
        let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
        let retry = Retry::times(1).backoff(Duration::from_secs(1 << 20));
        let fail = |_: u32| -> Result<u32, &str> {
            let _ = begun.send(());
            Err("no")
        };
        let pipeline = Pipeline::new(0..1_u32).try_map(fail).on_error(retry).on_error(Skip);
        let Parts { stages, .. } = pipeline.into_parts().expect("valid settings");
        let pool = Pool::builder().workers(2).build().expect("a pool");
        let apply =
            || stages.apply(&pool, &token, &mut Default::default(), numbered(0, 0, vec![0]));
        let canceller = token.clone();
        let cancel = move || {
            has_begun.recv().expect("a call");
            canceller.cancel();
        };
        // The pause is over only when the other worker has cancelled the token.
        let (ended, ()) = pool.install(|| crate::join(apply, cancel));
        assert!(matches!(ended, Err(PipelineError::Cancelled { .. })));
    }
}
