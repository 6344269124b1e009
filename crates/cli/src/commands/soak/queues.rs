//! A queue under load, of any flavour.

use super::die::Die;
use super::hammer::{Plan, Queue};
use super::tally::Tally;
use super::trouble::Trouble;

pub(super) fn random(die: &mut Die, most: u64) -> Plan {
    let queues = [
        Queue::Bounded(1 << die.roll(9)),
        Queue::Growable,
        Queue::Locked,
        Queue::Injector(1 + die.roll(3) as usize),
    ];
    Plan {
        queue: die.pick(&queues),
        items: die.roll(most) as usize,
        thieves: die.roll(5) as usize + 1,
        every: die.pick(&[1, 2, 7, 100]),
        pops: die.pick(&[1, 3, 11, 64]),
        batches: die.pick(&[1, 2, 4, 1000]),
    }
}

/// How many items there were, or what is wrong.
pub(super) fn run(plan: &Plan) -> Result<u64, Trouble> {
    check(&plan.run()?.tally, plan.items).map_err(|wrong| format!("{wrong}, in {plan:?}"))?;
    Ok(plan.items as u64)
}

/// Each number came exactly once.
pub(super) fn check(tally: &Tally, count: usize) -> Result<(), String> {
    match (tally.lost(), tally.doubled()) {
        (0, 0) => Ok(()),
        (lost, doubled) => Err(format!("{lost} lost, {doubled} doubled, of {count}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shapes_are_right() {
        for seed in 0..150 {
            let plan = random(&mut Die::new(seed), 300);
            assert_eq!(run(&plan), Ok(plan.items as u64), "seed {seed}");
        }
    }

    #[test]
    fn an_item_that_is_lost_is_found() {
        let tally = Tally::new(3);
        tally.mark(0);
        tally.mark(2);
        assert_eq!(check(&tally, 3), Err("1 lost, 0 doubled, of 3".to_owned()));
    }

    #[test]
    fn an_item_that_is_doubled_is_found() {
        let tally = Tally::new(2);
        [0, 1, 0].into_iter().for_each(|item| tally.mark(item));
        assert_eq!(check(&tally, 2), Err("0 lost, 1 doubled, of 2".to_owned()));
    }
}
