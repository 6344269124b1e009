//! Is what came out of a pipeline what a loop would have made of it, and did it end as it had to?

use heist::pipeline::{PipelineError, Report, Stage};

use super::shape::{Fault, HEAVIEST, Origin, PLANNED, Shape, Taken, processed};

/// If something is wrong: what.
pub(crate) fn check(shape: &Shape, taken: &Taken) -> Result<(), String> {
    match &taken.end {
        Some(Ok(report)) => {
            whole(shape, taken)?;
            report_is_right(shape, report)?;
        }
        Some(Err(error)) => is_planned(shape, error)?,
        None => expect(shape.fault == Fault::ResultsAreDropped, || "it has no end".into())?,
    }
    results_are_right(shape, &taken.results)
}

fn expect(is_so: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(wrong()) }
}

/// It came to the end of its source: might it?
fn whole(shape: &Shape, taken: &Taken) -> Result<(), String> {
    let might = match shape.fault {
        Fault::Nothing => true,
        // Perhaps too late.
        Fault::StageCancels | Fault::SinkCancels => true,
        _ if shape.is_ended_from_outside() => !matches!(shape.origin, Origin::Senders(_)),
        // There was nothing that could go wrong.
        _ => shape.items == 0,
    };
    expect(might, || "nothing went wrong".into())?;
    expect(!taken.refused, || "a sender was refused".into())?;
    let count = taken.results.len() as u64;
    expect(count == shape.items, || format!("{count} results of {}", shape.items))
}

fn report_is_right(shape: &Shape, report: &Report) -> Result<(), String> {
    let by_workers = report.per_worker.iter().map(|worker| worker.batches).sum::<u64>();
    let stolen = report.per_worker.iter().map(|worker| worker.steals).sum::<u64>();
    let fewest = shape.items.div_ceil(shape.batch as u64);
    let most = if numbers_are_known(shape) { fewest } else { shape.items };
    let heaviest = shape.weight.map_or(0, |limit| limit.max(HEAVIEST)) as u64;
    let right = (report.items, report.results) == (shape.items, shape.items)
        && (fewest..=most).contains(&report.batches)
        && (by_workers, stolen) == (report.batches, report.steals)
        && (shape.steals || stolen == 0)
        && report.largest_in_flight <= shape.in_flight
        && report.largest_weight <= heaviest;
    expect(right, || format!("the report is {report:?}"))
}

/// Is it known beforehand in which batch an item is?
fn numbers_are_known(shape: &Shape) -> bool {
    shape.weight.is_none() && !matches!(shape.origin, Origin::Senders(_))
}

/// Is it what had to go wrong, and where?
fn is_planned(shape: &Shape, error: &PipelineError) -> Result<(), String> {
    let (panics, stage) = match shape.fault {
        Fault::SourceFails => (false, Stage::Source),
        Fault::SourcePanics => (true, Stage::Source),
        Fault::FirstMapPanics => (true, Stage::Map(1)),
        Fault::SecondMapFails => (false, Stage::Map(2)),
        Fault::SinkFails => (false, Stage::Sink),
        Fault::SinkPanics => (true, Stage::Sink),
        Fault::StageCancels | Fault::SinkCancels | Fault::OtherThreadCancels => {
            let cancelled = matches!(error, PipelineError::Cancelled);
            return expect(cancelled, || format!("not cancelled, but: {error}"));
        }
        Fault::PoolStops | Fault::PoolStopsNow => {
            let stopped = matches!(error, PipelineError::Stopped);
            return expect(stopped, || format!("not stopped, but: {error}"));
        }
        Fault::Nothing | Fault::ResultsAreDropped => return Err(format!("it failed: {error}")),
    };
    let said = match error {
        PipelineError::Failed { source, .. } if !panics => source.to_string(),
        PipelineError::Panicked { panic, .. } if panics => panic.to_string(),
        _ => String::new(),
    };
    let in_order = shape.ordered || stage != Stage::Sink;
    let batch = (numbers_are_known(shape) && in_order).then(|| shape.at / shape.batch as u64);
    let right = said.starts_with(PLANNED)
        && error.stage() == Some(stage)
        && (batch.is_none() || error.batch() == batch);
    expect(right, || format!("not in {stage}, batch {batch:?}: {error}"))
}

/// Whatever the end: nothing is doubled, wrong, out of order, or missing from before the fault.
fn results_are_right(shape: &Shape, results: &[u64]) -> Result<(), String> {
    let senders = match shape.origin {
        Origin::Senders(senders) => senders,
        _ => 1,
    };
    let mut numbers = results.to_vec();
    if !shape.ordered {
        numbers.sort_unstable();
        let doubled = numbers.windows(2).find(|pair| pair[0] == pair[1]);
        expect(doubled.is_none(), || format!("{doubled:?} was delivered twice"))?;
    }
    let known = |&number: &u64| number % 3 == 1 && number < processed(shape.items);
    expect(numbers.iter().all(known), || format!("made up: {numbers:?}"))?;
    if shape.ordered {
        // Of each sender, all up to some point.
        for sender in 0..senders {
            let own = numbers.iter().map(|number| number / 3).filter(|n| n % senders == sender);
            let in_turn = (sender..).step_by(senders as usize);
            expect(own.zip(in_turn).all(|(own, turn)| own == turn), || {
                format!("out of order: {numbers:?}")
            })?;
        }
    }
    let allowed = shape.how_many();
    let count = results.len() as u64;
    expect(allowed.contains(&count), || format!("{count} results, not {allowed:?}"))
}

impl Shape {
    /// How many results there may be.
    fn how_many(&self) -> std::ops::RangeInclusive<u64> {
        let (at, batch) = (self.at, self.batch as u64);
        match self.fault {
            _ if self.items == 0 => 0..=0,
            Fault::Nothing => self.items..=self.items,
            Fault::SinkFails | Fault::SinkPanics | Fault::ResultsAreDropped => at..=at,
            Fault::SinkCancels => at + 1..=self.items,
            Fault::StageCancels | Fault::OtherThreadCancels => 0..=self.items,
            Fault::PoolStops | Fault::PoolStopsNow => 0..=self.items,
            // Without order, those after it may have been faster.
            _ if !self.ordered => 0..=self.items - 1,
            Fault::SourceFails => at..=at,
            Fault::SourcePanics | Fault::FirstMapPanics | Fault::SecondMapFails => {
                match self.origin {
                    Origin::Senders(_) => 0..=self.items - 1,
                    _ if self.weight.is_some() => (at + 1).saturating_sub(batch)..=at,
                    _ => at - at % batch..=at,
                }
            }
        }
    }
}
