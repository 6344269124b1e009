//! The contract of `heist cluster`: it is the program `heist-cluster`, or says how to get it.

#![cfg(unix)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use common::{directory, expect, heist, text};

#[test]
fn arguments_and_exit_code_are_those_of_the_other_program() {
    let folder = directory();
    let file = folder.path().join("heist-cluster");
    fs::write(&file, "#!/bin/sh\necho \"$@\"\nexit 7\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    for arguments in [
        &["status", "--json"][..],
        &["--help"],
        &["worker", "--node", "a", "--", "./program", "--quiet"],
        &[],
    ] {
        let mut command = heist(&["cluster"]);
        let output = command.args(arguments).env("PATH", folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout).trim_end(), arguments.join(" "));
    }
}

#[test]
fn without_the_program_it_says_how_to_install_it() {
    let folder = directory();
    let output = heist(&["cluster", "status"]).env("PATH", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(said.contains("cargo install --path crates/cluster --features command"), "{said}");
}

#[test]
fn the_help_names_the_other_program() {
    let (help, _) = expect(&["help", "cluster"], 0);
    assert!(help.contains("heist-cluster") && help.contains("cargo install"), "{help}");
}
