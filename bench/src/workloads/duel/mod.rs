//! The duel workload: heist's three strategies and rayon on equal tasks, on unequal tasks that one worker spawns,
//! on a tree of tasks, and on a recursion by joins; with one worker, with one for each processor, and with some
//! numbers between.
//!
//! A sample takes 20 to 40 ms on two processors, so that everything runs several times while a user watches.

mod recursive;
mod work;

use std::thread;
use std::time::Duration;

use harness::metric::{self, Metric};
use harness::row::Row;
use work::Work;
pub(crate) use work::uniform;

use crate::peers::{self, Pool, heist, rayon};
use crate::workloads::latency;

/// The largest count of different numbers of workers, because every row takes time.
const MOST_ROWS: usize = 5;

/// The pause before each question, and the number of questions in a sample.
const QUESTIONS: (Duration, usize) =
    if cfg!(test) { (Duration::from_micros(10), 3) } else { (Duration::from_millis(1), 50) };

pub(crate) fn rows() -> Vec<Row> {
    let cores = thread::available_parallelism().map_or(1, Into::into);
    let rows = |work| workers(cores).into_iter().map(move |workers| of_tasks(work, workers));
    let tasks = Work::ALL.into_iter().flat_map(rows);
    tasks.chain(workers(cores).into_iter().map(of_joins)).chain([questions()]).collect()
}

/// Returns one, the number of processors, and powers between: of two, or of four if these would be too many, and so
/// on.
fn workers(cores: usize) -> Vec<usize> {
    let powers = |bits: usize| {
        let below = (0..).map(move |power| 1_usize << (power * bits));
        below.take_while(|&workers| workers < cores).chain([cores]).collect()
    };
    let mut lists = (1..).map(powers);
    lists.find(|list: &Vec<usize>| list.len() <= MOST_ROWS).expect("a list of two is short enough")
}

/// Returns a row without entries.
fn row(id: &str, title: &str, metric: &'static Metric, workers: usize) -> Row {
    let case = |workers| format!("{id}/{workers}");
    let title = format!("{title}, {}", peers::workers(workers));
    let mut row = Row::of_pools("duel", case(workers), title, vec![metric]);
    row.references = vec![rayon::ThreadPool::NAME, heist::Global::NAME];
    row.workers = Some(workers);
    row.one_worker = (workers > 1).then(|| format!("duel/{}", case(1)));
    row
}

fn of_joins(workers: usize) -> Row {
    let mut row = row(recursive::ID, recursive::TITLE, &metric::JOIN, workers);
    recursive::enter(&mut row, workers);
    row
}

fn of_tasks(work: Work, workers: usize) -> Row {
    let mut row = row(work.id(), work.title(), &metric::TASK, workers);
    enter::<heist::Stealing>(&mut row, work, workers);
    enter::<heist::Locked>(&mut row, work, workers);
    enter::<heist::Global>(&mut row, work, workers);
    enter::<rayon::ThreadPool>(&mut row, work, workers);
    row
}

fn enter<P: Pool>(row: &mut Row, work: Work, workers: usize) {
    row.enter(P::NAME, move || work.measure::<P>(workers));
}

/// Returns the row in which a thread outside asks an idle pool.
fn questions() -> Row {
    let (idle, questions) = QUESTIONS;
    let title = "a thread outside asks an idle pool".into();
    let mut row = Row::of_pools("duel", "latency".into(), title, vec![&metric::P50, &metric::P99]);
    row.references = vec![rayon::ThreadPool::NAME];
    latency::enter::<heist::Stealing>(&mut row, idle, questions);
    latency::enter::<heist::Locked>(&mut row, idle, questions);
    latency::enter::<heist::Global>(&mut row, idle, questions);
    latency::enter::<rayon::ThreadPool>(&mut row, idle, questions);
    row
}

#[cfg(test)]
mod tests {
    use super::workers;

    #[test]
    fn numbers_of_workers_are_few_and_end_with_all_processors() {
        assert_eq!(workers(1), [1]);
        assert_eq!(workers(2), [1, 2]);
        assert_eq!(workers(6), [1, 2, 4, 6]);
        assert_eq!(workers(16), [1, 2, 4, 8, 16]);
        assert_eq!(workers(24), [1, 4, 16, 24]);
        assert_eq!(workers(64), [1, 4, 16, 64]);
        assert_eq!(workers(192), [1, 4, 16, 64, 192]);
        assert_eq!(workers(1024), [1, 8, 64, 512, 1024]);
    }
}
