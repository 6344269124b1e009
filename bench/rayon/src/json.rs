//! The little JSON that is needed: to write it, and to read what the worker has written.

use std::fmt::Write;

/// A JSON string.
pub(crate) fn text(value: &str) -> String {
    let mut out = String::from('"');
    for char in value.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            control if control.is_control() => {
                write!(out, "\\u{:04x}", control as u32).expect("a String takes all");
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}

/// A JSON list.
pub(crate) fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(","))
}

/// As many digits as mean something.
pub(crate) fn number(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// The string under a key. It has nothing that was escaped.
pub(crate) fn read_text<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = object.split_once(&format!("\"{key}\":\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// The number under a key.
pub(crate) fn read_number(object: &str, key: &str) -> Option<f64> {
    let (_, rest) = object.split_once(&format!("\"{key}\":"))?;
    rest.split([',', '}']).next()?.parse().ok()
}

/// The numbers in the list under a key.
pub(crate) fn read_numbers(object: &str, key: &str) -> Option<Vec<f64>> {
    let (_, rest) = object.split_once(&format!("\"{key}\":["))?;
    let (values, _) = rest.split_once(']')?;
    values.split(',').map(|value| value.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(text("a \"b\" \\ c\n"), r#""a \"b\" \\ c\u000a""#);
        assert_eq!(text("µs"), "\"µs\"");
    }

    #[test]
    fn what_was_written_can_be_read() {
        let values = [1.5, 20_000.4].map(number);
        let line = format!("{{\"a\":{},\"n\":7,\"b\":{}}}", text("one"), list(values));
        assert_eq!(read_text(&line, "a"), Some("one"));
        assert_eq!(read_number(&line, "n"), Some(7.0));
        assert_eq!(read_numbers(&line, "b"), Some(vec![1.5, 20_000.0]));
        assert_eq!(read_numbers(&line, "c"), None);
        assert_eq!(read_numbers("{\"b\":[]}", "b"), None);
    }
}
