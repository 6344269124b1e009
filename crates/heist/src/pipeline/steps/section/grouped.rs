//! A section in which the items of a key are processed one after the other, in the order of the source.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;

use super::{Lot, Made, Origin, Parked, Section, drop_each, emit, process};
use crate::panic::contain;
use crate::pipeline::Pipeline;
use crate::pipeline::config::Misuse;
use crate::pipeline::deliver::BatchEntry;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::source::Source;
use crate::pipeline::steps::context::ALL_ITEMS;
use crate::pipeline::steps::{Contained, Context, Counts, Leftovers, Passed, Place, Steps, Token};
use crate::sync::{Arc, Mutex, Padded, lock};

/// The largest number of groups. Each takes some hundred bytes. A guess at what nobody needs more of.
const MOST_GROUPS: usize = 1 << 16;

/// The stages `G`, and then the stages `H`, in groups of items by the key `Q`. `X` is where the items wait. See
/// [`Pipeline::group_by_key`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::Grouped;
///
/// let stages: Pipeline<_, Grouped<_, _, _, _>> =
///     Pipeline::new(1..=3).group_by_key(2, |n| n % 2, |group| group.map(|n| n * n));
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stages.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, [1, 4, 9]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Grouped<G, Q, H, X> {
    before: G,
    key: Q,
    stages: H,
    groups: X,
}

impl<G: fmt::Debug, Q, H: fmt::Debug, X> fmt::Debug for Grouped<G, Q, H, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, stages, .. } = self;
        f.debug_struct("Grouped")
            .field("before", before)
            .field("stages", stages)
            .finish_non_exhaustive()
    }
}

/// The groups of a [`Grouped`] section. `I` are the items, `U` the results, and `W` is what the stages keep.
#[doc(hidden)]
pub struct Groups<I, U, W> {
    /// Brings the batches into the order of the source. Its lock is taken before that of a group.
    entrance: Padded<Mutex<Entrance<I, U>>>,
    groups: Box<[SharedGroup<I, U, W>]>,
}

/// A group, which is far from the others in memory.
type SharedGroup<I, U, W> = Padded<Mutex<Group<I, U, W>>>;

impl<I, U, W> fmt::Debug for Groups<I, U, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Groups").field("groups", &self.groups.len()).finish_non_exhaustive()
    }
}

struct Entrance<I, U> {
    /// The number of the next batch whose items may go to their groups.
    next: u64,
    /// The batches that have come before one with a lesser number, by their numbers.
    early: BTreeMap<u64, Vec<Share<I, U>>>,
}

struct Group<I, U, W> {
    /// The shares that no worker has taken, in the order of the source.
    shares: VecDeque<Share<I, U>>,
    /// Whether there is a token for the group, or a worker has one of its shares.
    is_taken: bool,
    /// What the stages keep, while no worker has it.
    kept: W,
}

/// The items of a batch that belong to one group. There is at least one.
struct Share<I, U> {
    group: usize,
    lot: Lot<I>,
    batch: Arc<Whole<U>>,
}

/// A batch whose shares are processed by themselves.
struct Whole<U> {
    entry: BatchEntry,
    gathered: Mutex<Gathered<U>>,
}

struct Gathered<U> {
    /// The number of shares that have not been processed.
    left: usize,
    made: Made<U>,
    counts: Counts,
}

impl<I, U, W: Default> Groups<I, U, W> {
    fn new(groups: usize) -> Self {
        let group = |_| {
            let group = Group { shares: VecDeque::new(), is_taken: false, kept: W::default() };
            Padded(Mutex::new(group))
        };
        let entrance = Entrance { next: 0, early: BTreeMap::new() };
        Self { entrance: Padded(Mutex::new(entrance)), groups: (0..groups).map(group).collect() }
    }

    /// Lets the shares of a batch wait in their groups, and those of the batches that have waited for it (G1). Returns a token for
    /// each group that had nothing to do.
    fn enter(&self, section: usize, number: u64, shares: Vec<Share<I, U>>) -> Vec<Token> {
        let mut tokens = Vec::new();
        let mut entrance = lock(&self.entrance.0);
        if number != entrance.next {
            entrance.early.insert(number, shares);
            return tokens;
        }
        let mut next = Some(shares);
        while let Some(shares) = next {
            for share in shares {
                let entry = share.batch.entry;
                let index = share.group;
                let mut group = lock(&self.groups[index].0);
                group.shares.push_back(share);
                if !mem::replace(&mut group.is_taken, true) {
                    tokens.push(Token { section, group: index, entry });
                }
            }
            entrance.next += 1;
            let following = entrance.next;
            next = entrance.early.remove(&following);
        }
        tokens
    }

    /// Takes the first share of a group, and what the stages keep, for the worker that has its token (G3).
    fn take(&self, group: usize) -> (Share<I, U>, W) {
        let mut group = lock(&self.groups[group].0);
        let share = group.shares.pop_front().expect("a group has a token if it has shares");
        (share, mem::take(&mut group.kept))
    }

    /// Puts back what the stages keep, and returns a token for the next share of the group if there is one (G2).
    fn put_back(&self, section: usize, index: usize, kept: W) -> Option<Token> {
        let mut group = lock(&self.groups[index].0);
        group.kept = kept;
        let entry = group.shares.front().map(|share| share.batch.entry);
        group.is_taken = entry.is_some();
        entry.map(|entry| Token { section, group: index, entry })
    }
}

/// A group that a worker has taken a share of. It goes on with the next one when this is dropped.
struct Taken<'g, 'r, I, U, W: Default> {
    groups: &'g Groups<I, U, W>,
    context: &'g Context<'r>,
    token: Token,
    /// What the stages keep, unless the worker has it, or has panicked with it.
    kept: W,
}

impl<I, U, W: Default> Drop for Taken<'_, '_, I, U, W> {
    fn drop(&mut self) {
        let Token { section, group, .. } = self.token;
        if let Some(next) = self.groups.put_back(section, group, mem::take(&mut self.kept)) {
            self.context.control().make_ready(&[next]);
        }
    }
}

impl<U> Whole<U> {
    /// Adds what was made of a share (G4). Returns everything that was made of the batch when this was the last one.
    fn gather(&self, mut made: Made<U>, counts: Counts) -> Option<(Made<U>, Counts)> {
        let mut gathered = lock(&self.gathered);
        gathered.made.0.append(&mut made.0);
        gathered.counts.add(counts);
        gathered.left -= 1;
        (gathered.left == 0).then(|| (Leftovers(mem::take(&mut gathered.made.0)), gathered.counts))
    }
}

/// Collects the items of a batch, each with its group.
struct Sorter<'q, I, Q> {
    key: &'q Q,
    groups: usize,
    items: Leftovers<(usize, Origin, I)>,
}

impl<I, Q> Sorter<'_, I, Q> {
    /// Adds the next item. The key is the user's code.
    fn push<K: Hash>(&mut self, item: I, place: Place<'_>)
    where
        Q: Fn(&I) -> K,
    {
        let item = Contained::hold(item);
        let hash = place.guard(|| {
            let mut hasher = DefaultHasher::new();
            (self.key)(item.value()).hash(&mut hasher);
            hasher.finish()
        });
        let origin = Origin { order: self.items.0.len(), place: place.context.origin().place };
        self.items.0.push(((hash % self.groups as u64) as usize, origin, item.take()));
    }

    /// Returns the shares of the batch.
    fn shares<U>(mut self, context: &Context<'_>) -> Vec<Share<I, U>> {
        // The order of the items of a group does not change.
        self.items.0.sort_by_key(|(group, ..)| *group);
        let count = self.items.0.chunk_by(|a, b| a.0 == b.0).count();
        if count == 0 {
            return Vec::new();
        }
        let made = Leftovers(Vec::with_capacity(self.items.0.len()));
        let gathered = Mutex::new(Gathered { left: count, made, counts: context.take_counts() });
        let batch = Arc::new(Whole { entry: context.entry(), gathered });
        let mut shares: Vec<Share<I, U>> = Vec::with_capacity(count);
        for (group, origin, item) in self.items.0.drain(..) {
            if shares.last().is_none_or(|last| last.group != group) {
                shares.push(Share { group, lot: Lot::with_capacity(1), batch: Arc::clone(&batch) });
            }
            shares.last_mut().expect("one was pushed").lot.push(item, origin);
        }
        shares
    }
}

impl<G, Q, H, X> Sealed for Grouped<G, Q, H, X> {}

impl<T, G, Q, K, H> Steps<T> for Grouped<G, Q, H, Groups<G::Out, H::Out, H::State>>
where
    G: Steps<T>,
    G::Out: Send,
    Q: Fn(&G::Out) -> K + Send + Sync,
    K: Hash,
    H: Steps<G::Out>,
    H::Out: Send,
{
    type Out = H::Out;
    type State = G::State;

    const STAGES: usize = G::STAGES + 1 + H::STAGES;
    const ONE_TO_ONE: bool = G::ONE_TO_ONE && H::ONE_TO_ONE;
    const TRACKS: bool = true;
    const SECTIONS: usize = G::SECTIONS + 1;

    fn apply<const TRACK: bool>(
        &self,
        state: &mut Self::State,
        batch: &mut Vec<T>,
        context: &Context<'_>,
        out: &mut impl FnMut(H::Out) -> Passed,
    ) -> Passed {
        let place = Place { context, stage: G::STAGES + 1 };
        let mut sorter = self.sorter(batch.len());
        self.before.apply::<true>(state, batch, context, &mut |item| {
            sorter.push(item, place);
            context.check()
        })?;
        self.arrive(Self::SECTIONS, sorter, context, out)
    }

    fn resume(
        &self,
        state: &mut Self::State,
        token: Token,
        context: &Context<'_>,
        out: &mut impl FnMut(H::Out) -> Passed,
    ) -> Passed {
        if token.section == Self::SECTIONS {
            return self.go_on(G::STAGES + 1, token, context, out);
        }
        let place = Place { context, stage: G::STAGES + 1 };
        let mut sorter = self.sorter(token.entry.items);
        self.before.resume(state, token, context, &mut |item| {
            sorter.push(item, place);
            context.check()
        })?;
        self.arrive(Self::SECTIONS, sorter, context, out)
    }

    fn drop_each(self) {
        contain(|| drop(self.key));
        drop_each::<T, G, H>(self.before, self.stages, self.groups);
    }
}

impl<I, G, Q, H> Grouped<G, Q, H, Groups<I, H::Out, H::State>>
where
    H: Steps<I>,
{
    fn sorter(&self, items: usize) -> Sorter<'_, I, Q> {
        let items = Leftovers(Vec::with_capacity(items));
        Sorter { key: &self.key, groups: self.groups.groups.len(), items }
    }

    /// Has the items of a batch wait in their groups.
    fn arrive(
        &self,
        section: usize,
        sorter: Sorter<'_, I, Q>,
        context: &Context<'_>,
        out: &mut impl FnMut(H::Out) -> Passed,
    ) -> Passed {
        let shares = sorter.shares(context);
        let is_empty = shares.is_empty();
        let tokens = self.groups.enter(section, context.entry().number, shares);
        context.control().make_ready(&tokens);
        // No worker comes back to a batch without a share.
        if is_empty { emit(Leftovers(Vec::new()), context, out) } else { Err(Parked.into()) }
    }

    /// Processes the first share of a group, and passes the results of its batch on if this was the last one.
    fn go_on(
        &self,
        before: usize,
        token: Token,
        context: &Context<'_>,
        out: &mut impl FnMut(H::Out) -> Passed,
    ) -> Passed {
        let (Share { mut lot, batch, .. }, mut kept) = self.groups.take(token.group);
        let mut taken = Taken { groups: &self.groups, context, token, kept: H::State::default() };
        let made = process(&self.stages, &mut kept, &mut lot, before, context);
        taken.kept = kept;
        drop(taken);
        let mut made = made?;
        let first = lot.origins[0].order;
        for (origin, _) in made.0.iter_mut().filter(|(origin, _)| origin.place == ALL_ITEMS) {
            origin.order = first;
        }
        let Some((mut made, counts)) = batch.gather(made, context.take_counts()) else {
            return Err(Parked.into());
        };
        context.add_counts(counts);
        // Each share has its results in order.
        made.0.sort_by_key(|(origin, _)| origin.order);
        emit(made, context, out)
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Adds stages in which items of the same key are processed one after the other, in the order of the source, and items of
    /// different keys by several workers at the same time.
    ///
    /// The items are distributed to so many `groups`, by a hash of the key. Each group processes its items in order, also if results
    /// are not [ordered](Self::ordered). The results of a batch go on together, in the order of its items. A
    /// [`map_init`](Self::map_init) among the stages has a value for each group, instead of one for each worker: all items of a
    /// key find the same value, which other keys of the group share. (After a panic, the group gets a new one.)
    ///
    /// Some times as many groups as the pool has workers are enough, unless few keys have most of the items. A group that is
    /// behind keeps no worker: its items wait, and their batches are [in flight](Self::in_flight), so that there is a bound for
    /// them. Take larger [batches](Self::batch) than usual: each is divided.
    ///
    /// The function that returns the key counts as a stage of its own. If it is expensive to clone a key, return a hash of it. If a
    /// stage fails, the error is that of any item of its batch that fails, not always of the first one. A
    /// [`map_batch`](Self::map_batch) among the stages gets the items of a batch that belong to one group, never none, and what
    /// comes of it takes the place of the first of these.
    ///
    /// The stages must not wait for the run: if one of them [sends](crate::pipeline::Sender::send) to the feed of its own pipeline
    /// and that is full, the items that would make room may be waiting behind it.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use heist::pipeline::Pipeline;
    ///
    /// // The balance of each account after each transfer. Those of an account must be booked in order.
    /// let transfers = [("ann", 50), ("bert", 20), ("ann", -30), ("bert", 5), ("ann", 1)];
    /// let book = |balances: &mut HashMap<&str, i32>, (account, amount)| {
    ///     let balance = balances.entry(account).or_insert(0);
    ///     *balance += amount;
    ///     (account, *balance)
    /// };
    /// let pool = heist::Pool::builder().workers(4).build()?;
    /// let mut balances = Vec::new();
    /// Pipeline::new(transfers)
    ///     .group_by_key(16, |(account, _)| *account, |group| group.map_init(HashMap::new, book))
    ///     .ordered()
    ///     .run(&pool, |balance| balances.push(balance))?;
    /// assert_eq!(balances, [("ann", 50), ("bert", 20), ("ann", 20), ("bert", 25), ("ann", 21)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use heist::pipeline::Pipeline;
    ///
    /// // A log: how long has each request taken? Its first line begins it, and the second one ends it.
    /// let log = "10 a begin\n12 b begin\n15 b end\n31 a end\n";
    /// let parse = |line: String| {
    ///     let mut words = line.split(' ').map(str::to_owned);
    ///     let time: u32 = words.next()?.parse().ok()?;
    ///     Some((time, words.next()?))
    /// };
    /// let match_up = |open: &mut HashMap<String, u32>, (time, request): (u32, String)| match open.remove(&request) {
    ///     Some(begun) => Some((request, time - begun)),
    ///     None => {
    ///         open.insert(request, time);
    ///         None
    ///     }
    /// };
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut times = Vec::new();
    /// Pipeline::lines(log.as_bytes())
    ///     .filter_map(parse)
    ///     .group_by_key(8, |(_, request)| request.clone(), |group| {
    ///         group.map_init(HashMap::new, match_up).filter_map(|time| time)
    ///     })
    ///     .ordered()
    ///     .run(&pool, |time| times.push(time))?;
    /// assert_eq!(times, [("b".to_owned(), 3), ("a".to_owned(), 21)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The settings of a pipeline belong to the pipeline around the stages, and such stages cannot be within others, as with
    /// [`limit_workers`](Self::limit_workers). There may be 1 to 65,536 groups: otherwise, a run returns
    /// [`PipelineError::Groups`](crate::pipeline::PipelineError::Groups).
    #[allow(
        clippy::type_complexity,
        reason = "as with iterators, the type of a chain says what it is made of"
    )]
    pub fn group_by_key<Q, K, H>(
        self,
        groups: usize,
        key: Q,
        stages: impl FnOnce(Pipeline<Section<G::Out>>) -> Pipeline<Section<G::Out>, H>,
    ) -> Pipeline<S, Grouped<G, Q, H, Groups<G::Out, H::Out, H::State>>>
    where
        G: Steps<S::Item>,
        G::Out: Send,
        Q: Fn(&G::Out) -> K + Send + Sync,
        K: Hash,
        H: Steps<G::Out>,
        H::Out: Send,
    {
        let invalid = !(1..=MOST_GROUPS).contains(&groups);
        let misuse = invalid.then_some(Misuse::Groups(groups));
        self.with_section("group_by_key", stages, misuse, |before, stages| Grouped {
            before,
            key,
            stages,
            groups: Groups::new(if invalid { 1 } else { groups }),
        })
    }
}
