//! The workloads for work-stealing deques and injectors: those of heist-deque and of its peers.

mod deque;
mod injector;

use harness::row::Row;

/// Returns every case of the deques and of the injectors, with every item type.
pub fn rows() -> Vec<Row> {
    let mut rows = deque::rows();
    rows.extend(injector::rows());
    rows
}

#[cfg(test)]
mod tests {
    use harness::record::Record;
    use harness::{Bench, Unwatched};

    /// The loops check what comes out of a queue; here with the sizes that tests use.
    #[test]
    fn every_case_runs_with_every_queue() {
        let mut bench = Bench::new(super::rows(), Record::default());
        bench.run(1, &mut Unwatched);
        bench.assert_measured();
    }
}
