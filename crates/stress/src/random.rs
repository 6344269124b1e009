//! Random cases, each identified by a seed and a number.

use crate::rng::Rng;
use crate::{Error, Monitor, Size, Subject, forks, loops, pipelines, pools, queues};

/// The subjects that have random cases. Consecutive numbers go through them in this order.
pub const SUBJECTS: [Subject; 5] =
    [Subject::Queues, Subject::Pools, Subject::Forks, Subject::Loops, Subject::Pipelines];

/// Returns the subject of the case with this number.
pub fn subject_of(number: u64) -> Subject {
    SUBJECTS[(number % SUBJECTS.len() as u64) as usize]
}

/// Runs a case, and returns how many items, tasks or leaves it had. The same seed and number give the same
/// case.
///
/// ```
/// let items = heist_stress::random::run(1, 3)?;
/// println!("a loop over {items} items was right");
/// # Ok::<(), heist_stress::Error>(())
/// ```
pub fn run(seed: u64, number: u64) -> Result<u64, Error> {
    let mut rng = Rng::new(seed.rotate_left(32) ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    match subject_of(number) {
        Subject::Queues => queues::Case::random(&mut rng, 20_000).run(),
        Subject::Pools => pools::TaskTrees::random(&mut rng, 2000).run(),
        Subject::Forks => forks::Trees::random(&mut rng, 3000).run(),
        Subject::Loops => loops::Case::random(&mut rng, 20_000).run(),
        Subject::Pipelines => pipelines::OnPool::random(&mut rng).run(),
        Subject::Engines => unreachable!("engines have no random cases"),
    }
}

/// Runs some random cases of one subject, after the cases whose results are known.
pub(crate) fn run_some(
    subject: Subject,
    seed: u64,
    size: Size,
    monitor: &Monitor<'_>,
) -> Result<(), Error> {
    // A guess: as many as take a few seconds. `heist soak` runs more.
    let count = size.choose(20, 200);
    let numbers = (0..).filter(|&number| subject_of(number) == subject).take(count);
    let mut total = 0;
    for number in numbers {
        let case = format!("random case {number} of seed {seed}");
        total += monitor.watch(&case, || run(seed, number))?;
    }
    monitor.report(&format!("{count} random cases, {total} {}", subject.unit()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_take_turns() {
        assert_eq!([0, 1, 2, 3, 4].map(subject_of), SUBJECTS);
        assert_eq!(subject_of(5), SUBJECTS[0]);
    }

    #[test]
    fn a_case_of_full_size_of_each_subject_is_right() {
        for number in 0..5 {
            assert_eq!(run(1, number).map(|_| ()), Ok(()), "case {number}");
        }
    }
}
