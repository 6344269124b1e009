//! When requests come: times that are drawn before the run, as of many clients that know nothing of each other.

use std::time::Duration;

use harness::random::mix;

/// Returns when each request is due, counted from the beginning of the run. The gaps are distributed exponentially and
/// are the same for the same round in every process.
pub(super) fn draw(round: u64, count: usize, gap: Duration) -> Vec<Duration> {
    let stream = mix(round) << 32;
    let next = |due: &mut Duration, number| {
        *due += gap.mul_f64(-fraction(mix(stream.wrapping_add(number))).ln());
        Some(*due)
    };
    (1..=count as u64).scan(Duration::ZERO, next).collect()
}

/// Returns a fraction above 0 and at most 1 for a random number.
fn fraction(random: u64) -> f64 {
    ((random >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Duration = Duration::from_micros(250);

    #[test]
    fn gaps_are_distributed_exponentially() {
        let dues = draw(0, 100_000, GAP);
        let gaps: Vec<f64> =
            dues.windows(2).map(|pair| (pair[1] - pair[0]).div_duration_f64(GAP)).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((0.98..1.02).contains(&mean), "{mean}");
        for limit in [0.1, 1.0, 3.0] {
            let longer = gaps.iter().filter(|&&gap| gap > limit).count() as f64;
            let expected = (-limit).exp() * gaps.len() as f64;
            assert!((0.95..1.05).contains(&(longer / expected)), "{longer} > {limit}");
        }
    }

    #[test]
    fn only_another_round_has_other_arrivals() {
        assert_eq!(draw(3, 100, GAP), draw(3, 100, GAP));
        assert_ne!(draw(3, 100, GAP), draw(4, 100, GAP));
    }

    #[test]
    fn the_extreme_fractions_have_a_logarithm() {
        assert_eq!(fraction(u64::MAX), 1.0);
        assert!(fraction(0) > 0.0);
    }
}
