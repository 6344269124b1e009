//! A long stream: the memory that a pipeline needs must not grow with the length of its input.

use std::fs;

use heist::Pool;
use heist::pipeline::{Distribution, Pipeline};

use crate::{Error, Size, Violation};

/// The items of the stream in the normal size.
const ITEMS: u64 = 100_000_000;
/// How much more memory the long stream may need than a short one. What is in flight takes 2 MiB, and a
/// sanitizer keeps freed memory for a while. If all items were kept, they would take 800 MiB.
const MAX_GROWTH_KIB: u64 = 64 << 10;

/// Runs the streams, and returns a line about the memory that they took.
pub(super) fn run(size: Size) -> Result<String, Error> {
    let items = size.choose(ITEMS / 50, ITEMS);
    let pool = Pool::builder().workers(2).build()?;
    let done = stream_all(&pool, items);
    done.map_err(|violation| violation.in_case(&format_args!("a stream of {items} items")))
}

fn stream_all(pool: &Pool, items: u64) -> Result<String, Violation> {
    // The first run allocates what the pool keeps for ever. That does not count.
    Distribution::ALL.iter().try_for_each(|how| stream(pool, items / 100, *how))?;
    let before = Memory::now();
    stream(pool, items, Distribution::Pull)?;
    Distribution::ALL.iter().try_for_each(|how| stream(pool, items / 10, *how))?;
    let Some((before, after)) = before.zip(Memory::now()) else {
        return Ok(format!("{items} items; this system does not tell how much memory they took"));
    };
    let growth = after.growth_since(&before);
    if growth > MAX_GROWTH_KIB {
        return Err(Violation::Result(format!("memory grew by {growth} KiB")));
    }
    Ok(format!("{items} items, peak memory {} KiB, {growth} KiB more than before", after.peak))
}

/// Adds up the numbers below `count`, batch by batch.
fn stream(pool: &Pool, count: u64, distribution: Distribution) -> Result<(), Violation> {
    let batches = Pipeline::new(0..count).batch(1024).distribute(distribution);
    let mut sum = 0;
    let report = batches
        .map_batch(|batch| batch.iter().sum::<u64>())
        .run(pool, |part| sum += part)
        .map_err(|error| Violation::Result(format!("the stream failed: {error}")))?;
    if report.items == count && sum == count * (count - 1) / 2 {
        Ok(())
    } else {
        Err(Violation::Result(format!(
            "{sum} is not the sum of {count} numbers, distributed by {distribution:?}"
        )))
    }
}

/// The memory of this process, in KiB.
struct Memory {
    resident: u64,
    peak: u64,
}

impl Memory {
    /// Reads the memory, where the system tells.
    fn now() -> Option<Self> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let field = |name: &str| -> Option<u64> {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        Some(Self { resident: field("VmRSS:")?, peak: field("VmHWM:")? })
    }

    fn growth_since(&self, before: &Self) -> u64 {
        let resident = self.resident.saturating_sub(before.resident);
        resident.max(self.peak.saturating_sub(before.peak))
    }
}
