//! Numbers formatted for people: three digits and a fitting unit.

/// Formats a time that is given in nanoseconds.
pub(crate) fn time(nanoseconds: f64) -> String {
    let (size, unit) = unit(nanoseconds);
    format!("{} {unit}", digits(nanoseconds / size))
}

/// Formats a time without its unit, in the unit that fits `other`.
pub(crate) fn time_as(nanoseconds: f64, other: f64) -> String {
    digits(nanoseconds / unit(other).0)
}

/// Returns the length in nanoseconds and the name of the unit that fits a time.
fn unit(nanoseconds: f64) -> (f64, &'static str) {
    match nanoseconds.abs() {
        below if below < 999.5 => (1.0, "ns"),
        below if below < 999.5e3 => (1e3, "µs"),
        below if below < 999.5e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

/// Formats any number.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 999.5 { digits(value) } else { count(value.round() as u64) }
}

/// Formats a number with three digits, or with all digits before the decimal point.
pub(crate) fn digits(value: f64) -> String {
    let after = match value.abs() {
        0.0 => 0,
        small if small < 9.995 => 2,
        middle if middle < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.after$}")
}

/// Formats a whole number with a comma between groups of three digits.
pub(crate) fn count(number: u64) -> String {
    let plain = number.to_string();
    let mut apart = String::with_capacity(plain.len() + plain.len() / 3);
    for (place, digit) in plain.chars().enumerate() {
        if place > 0 && (plain.len() - place).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart
}

/// Formats a count of things whose plural ends in s: `1 worker`, `2 workers`.
pub(crate) fn of(number: u64, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", count(number))
}

/// Formats a part of a whole in percent. If the whole is zero, the result is `0 %`.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.0} %", 100.0 * part / whole) } else { "0 %".into() }
}

/// Joins a list: `a, b and c`.
pub(crate) fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit_that_fits() {
        let shown =
            [0.0, 0.947, 12.34, 999.4, 999.6, 8_120.0, 41_200_000.0, 1.5e9, 7.2e12].map(time);
        assert_eq!(
            shown,
            [
                "0 ns", "0.95 ns", "12.3 ns", "999 ns", "1.00 µs", "8.12 µs", "41.2 ms", "1.50 s",
                "7200 s"
            ]
        );
    }

    #[test]
    fn a_time_can_use_the_unit_of_another() {
        assert_eq!(time_as(900_000.0, 1_234_567.0), "0.90");
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(
            [0, 7, 999, 1_000, 1_234_567].map(count),
            ["0", "7", "999", "1,000", "1,234,567"]
        );
        assert_eq!([of(1, "steal"), of(2_000, "steal")], ["1 steal", "2,000 steals"]);
        assert_eq!(number(12_345.6), "12,346");
    }

    #[test]
    fn a_percentage_of_zero_is_zero() {
        assert_eq!(percent(0.0, 0.0), "0 %");
        assert_eq!(percent(1.0, 3.0), "33 %");
    }

    #[test]
    fn lists_end_with_and() {
        assert_eq!(list(&[]), "");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}
