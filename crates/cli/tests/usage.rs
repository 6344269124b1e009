//! The contract of invalid command lines: the error, a suggestion, and exit code 2.

mod common;

use common::expect;

#[test]
fn an_unknown_command_has_a_suggestion() {
    let (out, err) = expect(&["sok"], 2);
    assert!(err.contains("'soak'"), "{err}");
    assert_eq!(out, "");
}

#[test]
fn an_unknown_option_has_a_suggestion() {
    let (_, err) = expect(&["soak", "--minuts", "1"], 2);
    assert!(err.contains("--minutes"), "{err}");
}

#[test]
fn malformed_values_are_rejected() {
    for arguments in [
        &["soak", "--minutes", "0"][..],
        &["soak", "--minutes", "ten"],
        &["soak", "--seed", "x"],
        &["soak", "--shape", "3"],
        &["topo", "--color", "loud"],
        &["completions", "csh"],
        &["compare", "only-one.json"],
        &["bench", "--rounds", "many"],
    ] {
        let (_, err) = expect(arguments, 2);
        assert!(err.starts_with("error:"), "{err}");
    }
}

#[test]
fn numbers_out_of_range_name_the_range() {
    for (arguments, why) in [
        (&["--seconds", "-1"][..], "at least 0.1 seconds"),
        (&["soak", "--minutes", "-1"], "more than 0 minutes"),
        (&["soak", "--seconds", "-1"], "more than 0 seconds"),
        (&["bench", "--seconds", "0"], "more than 0 seconds"),
        (&["bench", "--seconds", "long"], "not a number of seconds"),
        (&["soak", "--seed", "-1"], "not a whole number from 0"),
        (&["soak", "--seed", "1", "--shape", "-1"], "not a whole number from 0"),
        (&["soak", "--seed", "1", "--shape", "18446744073709551615"], "not a whole number from 0"),
        (&["bench", "--rounds", "18446744073709551615"], "at most 1000000"),
    ] {
        let (_, err) = expect(arguments, 2);
        assert!(err.contains(why), "{err}");
    }
}

#[test]
fn a_run_has_one_limit() {
    for (arguments, other) in [
        (&["bench", "--seconds", "2", "--rounds", "3"][..], "--rounds"),
        (&["soak", "--seconds", "2", "--minutes", "3"], "--minutes"),
    ] {
        let (_, err) = expect(arguments, 2);
        assert!(err.contains("'--seconds <N>' cannot be used with"), "{err}");
        assert!(err.contains(other), "{err}");
    }
}

#[test]
fn an_unknown_shell_lists_the_known_ones() {
    let (_, err) = expect(&["completions", "csh"], 2);
    assert!(err.contains("bash") && err.contains("fish"), "{err}");
}
