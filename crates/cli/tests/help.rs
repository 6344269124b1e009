//! The contract of the help: it has examples, and explains the exit codes.

mod common;

use common::expect;

const COMMANDS: [&str; 8] =
    ["bench", "compare", "report", "trace", "soak", "sim", "topo", "completions"];

#[test]
fn the_help_has_examples_and_exit_codes() {
    let (help, _) = expect(&["--help"], 0);
    assert!(help.contains("Examples:"), "{help}");
    for code in ["    0  ", "    1  ", "    2  ", "    3  ", "    4  ", "  130  "] {
        assert!(help.contains(code), "{code} is not in\n{help}");
    }
    let (short, _) = expect(&["-h"], 0);
    assert!(short.contains("Examples:") && !short.contains("Exit codes:"), "{short}");
}

#[test]
fn every_command_has_at_least_three_examples() {
    for command in COMMANDS {
        for arguments in [[command, "--help"], ["help", command]] {
            let (help, _) = expect(&arguments, 0);
            let examples = help
                .lines()
                .filter(|line| line.starts_with("  ") && line.contains("heist "))
                .count();
            assert!(examples >= 3, "{command} has {examples}:\n{help}");
        }
    }
}

/// The parser accepts every example. Whether the files in it exist is another matter.
#[test]
fn examples_can_be_typed() {
    for command in COMMANDS {
        let (help, _) = expect(&[command, "--help"], 0);
        let examples = help
            .lines()
            .filter_map(|line| line.strip_prefix("  heist "))
            .filter(|line| line.starts_with(command));
        for example in examples {
            // The description after two spaces and the shell's operators are not arguments.
            let typed = example.split("  ").next().unwrap().split(['>', '|', '&']).next().unwrap();
            let words: Vec<&str> = typed.split_whitespace().chain(["--help"]).collect();
            expect(&words, 0);
        }
    }
}

#[test]
fn no_line_of_an_example_is_too_wide() {
    for command in COMMANDS {
        let (help, _) = expect(&[command, "-h"], 0);
        let wide = help
            .lines()
            .skip_while(|line| !line.contains("Examples:"))
            .find(|line| line.chars().count() > 80);
        assert_eq!(wide, None);
    }
}

#[test]
fn the_limits_of_a_comparison_are_explained() {
    let (help, _) = expect(&["compare", "--help"], 0);
    assert!(help.contains("Processes differ as well"), "{help}");
}

#[test]
fn there_is_a_version() {
    let (version, _) = expect(&["--version"], 0);
    assert_eq!(version.trim(), concat!("heist ", env!("CARGO_PKG_VERSION")));
}
