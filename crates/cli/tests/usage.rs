//! The contract of command lines that make no sense: what is wrong, what was perhaps meant, and exit code 2.

mod common;

use common::expect;

#[test]
fn an_unknown_command_is_told_its_neighbour() {
    let (out, err) = expect(&["sok"], 2);
    assert!(err.contains("'soak'"), "{err}");
    assert_eq!(out, "");
}

#[test]
fn an_unknown_option_is_told_its_neighbour() {
    let (_, err) = expect(&["soak", "--minuts", "1"], 2);
    assert!(err.contains("--minutes"), "{err}");
}

#[test]
fn values_that_make_no_sense() {
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
fn numbers_that_cannot_be_are_told_which_can() {
    for (arguments, why) in [
        (&["--seconds", "-1"][..], "at least 0.1 seconds"),
        (&["soak", "--minutes", "-1"], "more than 0 minutes"),
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
fn a_shell_that_is_not_known_is_told_which_are() {
    let (_, err) = expect(&["completions", "csh"], 2);
    assert!(err.contains("bash") && err.contains("fish"), "{err}");
}
