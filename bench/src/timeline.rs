//! Summarizes a trace for a page: when each thread ran tasks, slept and stole, in as many pieces as are visible.

use harness::histogram::buckets;
use harness::record::{Lane, Totals, Traced};
use heist::trace::{Event, EventKind, ThreadTrace, Trace};

/// The largest number of pieces of one kind in a lane: more than a screen has columns.
const MOST: usize = 1_500;

/// Gaps that are shorter than this fraction of the whole are not visible.
const UNSEEN: u64 = 10_000;

type Span = (u64, u64);

/// Summarizes a trace of this case by this pool for a page. Where threads have lost events, the summary begins
/// with the first moment from which all events of all threads are kept.
pub fn summarize(trace: &Trace, case: &str, by: &str) -> Traced {
    let thread = |thread: &ThreadTrace| {
        let event = |event: &Event| (event.nanoseconds, event.kind);
        Thread::new(&thread.name, thread.lost, thread.events.iter().map(event).collect())
    };
    let mut threads: Vec<_> = trace.threads.iter().map(thread).collect();
    // The workers by their indices, then the threads that came later.
    let workers = trace.workers.min(threads.len());
    threads[..workers].sort_by_key(Thread::first_worker);
    Traced { case: case.into(), by: by.into(), workers: trace.workers, ..summary(&threads) }
}

/// A thread of the trace.
#[derive(Default)]
struct Thread {
    name: String,
    lost: u64,
    events: Vec<(u64, EventKind)>,
    /// The times at which it became a worker, with the worker's index.
    workers: Vec<(u64, usize)>,
}

impl Thread {
    fn new(name: &str, lost: u64, events: Vec<(u64, EventKind)>) -> Self {
        let worker = |&(when, kind): &(u64, EventKind)| match kind {
            EventKind::WorkerBegin { worker } => Some((when, worker)),
            _ => None,
        };
        let workers = events.iter().filter_map(worker).collect();
        Self { name: name.into(), lost, events, workers }
    }

    /// Returns the worker index with which the thread began. If that event is lost, the number in the thread's name
    /// is used, which is the initial index.
    fn first_worker(&self) -> usize {
        let named = || self.name.rsplit_once('-')?.1.parse().ok();
        let known = (self.lost == 0).then(|| Some(self.workers.first()?.1)).flatten();
        known.or_else(named).unwrap_or(usize::MAX)
    }

    /// Returns how many tasks were running at the first event that is kept: the tasks that end without having
    /// begun.
    fn running(&self) -> usize {
        let (mut open, mut before) = (0_usize, 0);
        for (_, kind) in &self.events {
            match kind {
                EventKind::Start => open += 1,
                EventKind::End if open > 0 => open -= 1,
                EventKind::End => before += 1,
                _ => {}
            }
        }
        before
    }

    /// Returns whether it slept at the first event that is kept: it wakes up without having gone to sleep.
    fn sleeping(&self) -> bool {
        let mut kinds = self.events.iter().map(|&(_, kind)| kind);
        let first = kinds.find(|kind| matches!(kind, EventKind::Park | EventKind::Unpark));
        matches!(first, Some(EventKind::Unpark))
    }
}

fn summary(threads: &[Thread]) -> Traced {
    let shown = shown(threads);
    let mut times = Vec::new();
    let lane = |thread: &Thread| {
        let mut activity = Activity::of(thread, shown);
        times.append(&mut activity.times);
        let (busy, asleep) = (clipped(activity.busy, shown), clipped(activity.asleep, shown));
        let steals = steals(thread, threads, shown);
        let least = (shown.1 - shown.0) / UNSEEN;
        Lane {
            name: thread.name.clone(),
            tasks: activity.tasks,
            lost: thread.lost,
            busy: merged(&busy, least),
            asleep: merged(&asleep, least),
            steals: thinned(&steals),
            totals: Some(Totals::of(&busy, &asleep, &steals)),
        }
    };
    let lanes = threads.iter().map(lane).collect();
    let nanoseconds = shown.1 - shown.0;
    Traced { nanoseconds, lanes, task_times: buckets(times), ..Traced::default() }
}

/// Returns the span in which the events of every thread are known.
fn shown(threads: &[Thread]) -> Span {
    let first = |thread: &Thread| thread.events.first().map(|&(when, _)| when);
    let begin = threads.iter().filter_map(first).min().unwrap_or(0);
    let whole = threads.iter().filter(|thread| thread.lost > 0).filter_map(first).max();
    let last = threads.iter().filter_map(|thread| thread.events.last()).map(|&(when, _)| when);
    let begin = whole.unwrap_or(begin);
    (begin, last.max().unwrap_or(begin).max(begin))
}

/// What the events of a thread show, in the time of the trace.
#[derive(Default)]
struct Activity {
    /// The tasks that ended in the span shown. A thread that has kept more events than others has not done more
    /// work.
    tasks: u64,
    /// The duration of each task whose begin is known, including the tasks that ran on top of it.
    times: Vec<u64>,
    busy: Vec<Span>,
    asleep: Vec<Span>,
}

impl Activity {
    fn of(thread: &Thread, shown: Span) -> Self {
        let mut activity = Self::default();
        let first = thread.events.first().map(|&(when, _)| when);
        // The begin of each task that has not ended, `None` if lost; and since when the thread has been busy, or
        // asleep.
        let mut open = vec![None; thread.running()];
        let mut asleep = first.filter(|_| thread.sleeping());
        let mut busy = first.filter(|_| !open.is_empty() && asleep.is_none());
        for &(now, kind) in &thread.events {
            match kind {
                EventKind::Start => {
                    open.push(Some(now));
                    busy.get_or_insert(now);
                }
                EventKind::End => {
                    let begin = open.pop().flatten();
                    if now >= shown.0 {
                        activity.tasks += 1;
                        activity.times.extend(begin.map(|begin| now - begin));
                    }
                    if open.is_empty() {
                        activity.busy.extend(busy.take().map(|begin| (begin, now)));
                    }
                }
                // This also happens within a task that waits for another one.
                EventKind::Park => {
                    activity.busy.extend(busy.take().map(|begin| (begin, now)));
                    asleep = Some(now);
                }
                EventKind::Unpark => {
                    activity.asleep.extend(asleep.take().map(|begin| (begin, now)));
                    busy = (!open.is_empty()).then_some(now);
                }
                _ => {}
            }
        }
        activity.busy.extend(busy.map(|begin| (begin, shown.1)));
        activity.asleep.extend(asleep.map(|begin| (begin, shown.1)));
        activity
    }
}

/// Returns the steals of a thread: the time, the victim's index and the number of tasks.
fn steals(thread: &Thread, threads: &[Thread], shown: Span) -> Vec<(u64, usize, usize)> {
    let steal = |&(when, kind): &(u64, EventKind)| match kind {
        EventKind::Steal { victim, tasks } if when >= shown.0 => {
            Some((when - shown.0, thread_of(threads, victim, when)?, tasks))
        }
        _ => None,
    };
    thread.events.iter().filter_map(steal).collect()
}

/// Returns the thread that was this worker at this time: the last one with an event that says so. If that event is
/// lost, it is the thread that was this worker from the beginning, whose name ends with the worker's index.
fn thread_of(threads: &[Thread], worker: usize, when: u64) -> Option<usize> {
    let was = |(place, thread): (usize, &Thread)| {
        let before = thread.workers.iter().take_while(|worker| worker.0 <= when);
        let was = before.filter(|became| became.1 == worker).last();
        was.map(|&(when, _)| (when, place))
    };
    let last = threads.iter().enumerate().filter_map(was).max();
    let named = || threads.iter().position(|thread| thread.name.ends_with(&format!("-{worker}")));
    last.map(|(_, place)| place).or_else(named)
}

/// Returns the parts of the spans that are shown, relative to the beginning.
fn clipped(spans: Vec<Span>, shown: Span) -> Vec<Span> {
    let spans = spans.into_iter().filter(|span| span.1 > shown.0);
    spans.map(|span| (span.0.saturating_sub(shown.0), span.1 - shown.0)).collect()
}

/// Merges spans across gaps that are not visible and, if there are too many spans, across the shortest other gaps.
fn merged(spans: &[Span], unseen: u64) -> Vec<Span> {
    // With the index of the span that follows.
    let mut gaps: Vec<(u64, usize)> =
        spans.windows(2).zip(1..).map(|(pair, place)| (pair[1].0 - pair[0].1, place)).collect();
    gaps.retain(|&(gap, _)| gap > unseen);
    gaps.sort_unstable_by(|a, b| b.cmp(a));
    let mut begins: Vec<usize> = gaps.iter().take(MOST - 1).map(|&(_, place)| place).collect();
    begins.extend((!spans.is_empty()).then_some(0));
    begins.sort_unstable();
    let ends = begins.iter().skip(1).copied().chain([spans.len()]);
    begins.iter().zip(ends).map(|(&begin, end)| (spans[begin].0, spans[end - 1].1)).collect()
}

/// Merges neighbouring steals with the same victim if there are too many. The number of tasks stays the same.
fn thinned(steals: &[(u64, usize, usize)]) -> Vec<(u64, usize, usize)> {
    let mut thinned: Vec<(u64, usize, usize)> = Vec::new();
    for group in steals.chunks(steals.len().div_ceil(MOST).max(1)) {
        let first = thinned.len();
        for &(when, victim, tasks) in group {
            match thinned[first..].iter_mut().find(|steal| steal.1 == victim) {
                Some(steal) => steal.2 += tasks,
                None => thinned.push((when, victim, tasks)),
            }
        }
    }
    thinned
}

#[cfg(test)]
mod tests {
    use super::*;
    use EventKind::{End, Park, Start, Steal, Unpark, WorkerBegin};

    fn thread(name: &str, events: &[(u64, EventKind)]) -> Thread {
        Thread::new(name, 0, events.to_vec())
    }

    #[test]
    fn tasks_on_top_of_each_other_are_one_piece_and_sleep_is_another() {
        let events = [
            (100, WorkerBegin { worker: 0 }),
            (100, Start),
            (200, Start),
            (300, End),
            (400, Park),
            (500, Unpark),
            (600, End),
            (700, Park),
            (900, Unpark),
        ];
        let found = summary(&[thread("w", &events)]);
        assert_eq!(found.nanoseconds, 800);
        let lane = &found.lanes[0];
        assert_eq!(lane.tasks, 2);
        assert_eq!(lane.busy, [(0, 300), (400, 500)]);
        assert_eq!(lane.asleep, [(300, 400), (600, 800)]);
        assert_eq!(found.task_times.iter().map(|&(_, count)| count).sum::<u64>(), 2);
    }

    #[test]
    fn an_open_span_lasts_to_the_end() {
        let found = summary(&[
            thread("a", &[(0, Start)]),
            thread("b", &[(0, Park), (10, Unpark), (20, Park), (40, End)]),
        ]);
        assert_eq!(found.lanes[0].busy, [(0, 40)]);
        assert_eq!(found.lanes[1].asleep, [(0, 10), (20, 40)]);
    }

    #[test]
    fn the_span_begins_where_no_thread_has_lost_events() {
        let mut cut = thread("cut", &[(50, End), (60, Start), (70, End)]);
        cut.lost = 3;
        let whole = thread("whole", &[(0, Start), (20, End), (30, Start), (80, End)]);
        let found = summary(&[cut, whole]);
        assert_eq!(found.nanoseconds, 30);
        let tasks: Vec<_> = found.lanes.iter().map(|lane| (lane.tasks, lane.lost)).collect();
        assert_eq!(tasks, [(2, 3), (1, 0)]);
        assert_eq!(found.task_times.iter().map(|&(_, count)| count).sum::<u64>(), 2);
        assert_eq!(found.lanes[0].busy, [(10, 20)]);
        assert_eq!(found.lanes[1].busy, [(0, 30)]);
    }

    /// The begin of the lower task is lost.
    #[test]
    fn a_task_continues_when_the_task_on_top_of_it_ends() {
        let events = [(10, Start), (20, End), (30, Park), (40, Unpark), (50, End), (60, Park)];
        let lane = &summary(&[thread("w", &events)]).lanes[0];
        assert_eq!(lane.busy, [(0, 20), (30, 40)]);
        let woken = [(10, Steal { victim: 0, tasks: 1 }), (20, Unpark), (30, End)];
        let lane = &summary(&[thread("w", &woken)]).lanes[0];
        assert_eq!((&*lane.asleep, &*lane.busy), (&[(0, 10)][..], &[(10, 20)][..]));
    }

    /// Both threads keep the same number of events, so the one with shorter tasks has kept a shorter time.
    #[test]
    fn totals_cover_the_time_that_all_threads_have_kept() {
        let ring = |name, long| {
            let events = |place| {
                let end = 10_000 - place * long;
                [(end - long, Start), (end, End)]
            };
            let mut thread = thread(name, &(0..100).rev().flat_map(events).collect::<Vec<_>>());
            thread.lost = 1;
            thread
        };
        let found = summary(&[ring("quick", 10), ring("slow", 40)]);
        assert_eq!(found.nanoseconds, 1_000);
        assert_eq!((found.lanes[0].tasks, found.lanes[1].tasks), (100, 26));
        assert_eq!(found.task_times.iter().map(|&(_, count)| count).sum::<u64>(), 126);
    }

    #[test]
    fn a_victim_is_the_thread_that_was_that_worker_then() {
        let steal = |when| (when, Steal { victim: 0, tasks: 2 });
        let threads = [
            thread("heist-1", &[(0, WorkerBegin { worker: 1 }), steal(5), steal(15)]),
            thread("heist-0", &[(1, WorkerBegin { worker: 0 })]),
            thread("standby", &[(10, WorkerBegin { worker: 0 })]),
        ];
        assert_eq!(summary(&threads).lanes[0].steals, [(5, 1, 2), (15, 2, 2)]);
        let silent = [thread("heist-1", &[steal(5)]), thread("heist-0", &[])];
        assert_eq!(summary(&silent).lanes[0].steals, [(0, 1, 2)]);
    }

    #[test]
    fn the_number_of_pieces_is_limited() {
        let mut events = vec![(0, WorkerBegin { worker: 0 })];
        for place in 0..4_000 {
            let now = place * 10;
            events.push((now, Start));
            events.push((now, Steal { victim: place as usize % 2, tasks: 1 }));
            events.push((now + 1, End));
        }
        let found = summary(&[thread("heist-0", &events), thread("heist-1", &[])]);
        let lane = &found.lanes[0];
        assert_eq!((lane.tasks, lane.busy.len()), (4_000, MOST));
        assert!(lane.busy.is_sorted() && lane.busy[MOST - 1].1 == 39_991);
        assert!(lane.steals.len() <= 2 * MOST);
        assert_eq!(lane.steals.iter().map(|steal| steal.2).sum::<usize>(), 4_000);
        let totals = lane.totals();
        assert_eq!((totals.busy, totals.stole()), (4_000, 4_000));
        assert_eq!(totals.steals, [(0, 2_000, 2_000), (1, 2_000, 2_000)]);
    }

    #[test]
    fn invisible_gaps_do_not_count_as_busy() {
        let events: Vec<_> = (0..100)
            .flat_map(|place| [(place * 1_000, Start), (place * 1_000 + 990, End)])
            .chain([(200_000, Park), (300_000, Unpark)])
            .collect();
        let found = summary(&[thread("w", &events)]);
        let lane = &found.lanes[0];
        assert_eq!(lane.busy, [(0, 99_990)]);
        assert_eq!((lane.totals().busy, lane.totals().asleep), (99_000, 100_000));
    }

    #[test]
    fn a_thread_that_did_nothing_has_an_empty_lane() {
        let found = summary(&[Thread::default()]);
        let empty = Lane { totals: Some(Totals::default()), ..Lane::default() };
        assert_eq!((found.nanoseconds, found.lanes), (0, vec![empty]));
        assert_eq!(summary(&[]), Traced::default());
    }
}
