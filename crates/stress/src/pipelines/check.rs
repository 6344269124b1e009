//! Checks that a pipeline delivered what a sequential loop would have, and that it ended as its fault
//! demands.

use std::ops::RangeInclusive;

use heist::pipeline::{PipelineError, Report, Stage};

use super::case::{Case, Fault, HEAVIEST, Origin, Outcome, processed};
use crate::Violation;
use crate::planned::PLANNED;

pub(super) fn check(case: &Case, outcome: &Outcome) -> Result<(), Violation> {
    match &outcome.end {
        Some(Ok(report)) => {
            check_success(case, outcome)?;
            check_report(case, report)?;
        }
        Some(Err(error)) => check_error(case, error)?,
        None => expect(case.fault == Fault::ResultsAreDropped, || "the run has no end".into())?,
    }
    check_results(case, &outcome.results)
}

fn expect(right: bool, violation: impl FnOnce() -> String) -> Result<(), Violation> {
    if right { Ok(()) } else { Err(Violation::Result(violation())) }
}

/// Checks a pipeline that reached the end of its source.
fn check_success(case: &Case, outcome: &Outcome) -> Result<(), Violation> {
    let may_succeed = match case.fault {
        Fault::None => true,
        // The cancellation may come too late.
        Fault::StageCancels | Fault::SinkCancels => true,
        // With senders, the source has no end before the fault.
        _ if case.is_ended_from_outside() => !matches!(case.origin, Origin::Senders(_)),
        // Without items, the fault never occurs.
        _ => case.items == 0,
    };
    expect(may_succeed, || "the run succeeded in spite of its fault".into())?;
    expect(!outcome.refused, || "a sender was refused".into())?;
    let count = outcome.results.len() as u64;
    expect(count == case.items, || format!("{count} results of {} items", case.items))
}

fn check_report(case: &Case, report: &Report) -> Result<(), Violation> {
    let batches = report.per_worker.iter().map(|worker| worker.batches).sum::<u64>();
    let steals = report.per_worker.iter().map(|worker| worker.steals).sum::<u64>();
    let fewest = case.items.div_ceil(case.batch as u64);
    let most = if batches_are_known(case) { fewest } else { case.items };
    let max_weight = case.max_weight.map_or(0, |limit| limit.max(HEAVIEST)) as u64;
    let right = (report.items, report.results) == (case.items, case.items)
        && (fewest..=most).contains(&report.batches)
        && (batches, steals) == (report.batches, report.steals)
        && (case.steals || steals == 0)
        && report.largest_in_flight <= case.in_flight
        && report.largest_weight <= max_weight;
    if right {
        Ok(())
    } else {
        Err(Violation::Counters(format!("the report is wrong: {report:?}")))
    }
}

/// Returns whether the number of an item determines its batch.
fn batches_are_known(case: &Case) -> bool {
    case.max_weight.is_none() && !matches!(case.origin, Origin::Senders(_))
}

/// Checks that a pipeline failed with the planned fault, at the planned place.
fn check_error(case: &Case, error: &PipelineError) -> Result<(), Violation> {
    let (panics, stage) = match case.fault {
        Fault::SourceFails => (false, Stage::Source),
        Fault::SourcePanics => (true, Stage::Source),
        Fault::FirstMapPanics => (true, Stage::Step(1)),
        Fault::SecondMapFails => (false, Stage::Step(2)),
        Fault::SinkFails => (false, Stage::Sink),
        Fault::SinkPanics => (true, Stage::Sink),
        Fault::StageCancels | Fault::SinkCancels | Fault::OtherThreadCancels => {
            let cancelled = matches!(error, PipelineError::Cancelled { .. });
            return expect(cancelled, || format!("the run was not cancelled, but: {error}"));
        }
        Fault::PoolStops | Fault::PoolStopsNow => {
            let stopped = matches!(error, PipelineError::Stopped { .. });
            return expect(stopped, || format!("the run was not stopped, but: {error}"));
        }
        Fault::None | Fault::ResultsAreDropped => {
            return expect(false, || format!("the run failed without a fault: {error}"));
        }
    };
    let message = match error {
        PipelineError::Failed { source, .. } if !panics => source.to_string(),
        PipelineError::Panicked { panic, .. } if panics => panic.to_string(),
        _ => String::new(),
    };
    let in_order = case.ordered || stage != Stage::Sink;
    let batch = (batches_are_known(case) && in_order).then(|| case.fault_at / case.batch as u64);
    let right = message.starts_with(PLANNED)
        && error.stage() == Some(stage)
        && (batch.is_none() || error.batch() == batch);
    expect(right, || format!("expected a fault in {stage}, batch {batch:?}, but: {error}"))
}

/// Checks, however the run ended, that no result is doubled, wrong, out of order, or missing from before
/// the fault.
fn check_results(case: &Case, results: &[u64]) -> Result<(), Violation> {
    let senders = match case.origin {
        Origin::Senders(senders) => senders,
        _ => 1,
    };
    let mut numbers = results.to_vec();
    if !case.ordered {
        numbers.sort_unstable();
        let doubled = numbers.windows(2).find(|pair| pair[0] == pair[1]);
        expect(doubled.is_none(), || format!("{doubled:?} was delivered twice"))?;
    }
    let is_expected = |&number: &u64| number % 3 == 1 && number < processed(case.items);
    expect(numbers.iter().all(is_expected), || format!("a result of no item: {numbers:?}"))?;
    if case.ordered {
        // The results of each sender are a prefix of its items, in order.
        for sender in 0..senders {
            let own = numbers.iter().map(|number| number / 3).filter(|n| n % senders == sender);
            let expected = (sender..).step_by(senders as usize);
            expect(own.zip(expected).all(|(own, expected)| own == expected), || {
                format!("out of order: {numbers:?}")
            })?;
        }
    }
    let allowed = allowed_counts(case);
    let count = results.len() as u64;
    expect(allowed.contains(&count), || format!("{count} results instead of {allowed:?}"))
}

/// Returns how many results there may be.
fn allowed_counts(case: &Case) -> RangeInclusive<u64> {
    let (at, batch, items) = (case.fault_at, case.batch as u64, case.items);
    match case.fault {
        _ if items == 0 => 0..=0,
        Fault::None => items..=items,
        Fault::SinkFails | Fault::SinkPanics | Fault::ResultsAreDropped => at..=at,
        Fault::SinkCancels => at + 1..=items,
        Fault::StageCancels | Fault::OtherThreadCancels => 0..=items,
        Fault::PoolStops | Fault::PoolStopsNow => 0..=items,
        // Without order, later items may have been delivered before the fault.
        _ if !case.ordered => 0..=items - 1,
        Fault::SourceFails => at..=at,
        Fault::SourcePanics | Fault::FirstMapPanics | Fault::SecondMapFails => match case.origin {
            Origin::Senders(_) => 0..=items - 1,
            _ if case.max_weight.is_some() => (at + 1).saturating_sub(batch)..=at,
            _ => at - at % batch..=at,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Target;
    use super::*;
    use crate::rng::Rng;

    /// Checks `results` as those of three items in order, with no fault.
    fn check_three(results: Vec<u64>) -> Result<(), Violation> {
        let mut case = Case::random(&mut Rng::new(0));
        (case.items, case.ordered, case.fault) = (3, true, Fault::ResultsAreDropped);
        (case.fault_at, case.origin, case.target) = (3, Origin::Iterator, Target::Iterator);
        check(&case, &Outcome { results, end: None, refused: false })
    }

    #[test]
    fn a_result_that_is_lost_or_doubled_or_late_is_found() {
        let [a, b, c] = [0, 1, 2].map(processed);
        assert_eq!(check_three(vec![a, b, c]), Ok(()));
        for wrong in [vec![a, c], vec![a, b, b], vec![a, b, c, c], vec![b, a, c], vec![a, b, c + 1]]
        {
            assert!(check_three(wrong.clone()).is_err(), "{wrong:?}");
        }
    }
}
