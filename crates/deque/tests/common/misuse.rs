//! What the types forbid: programs that must not compile, in `tests/compile_fail` of each crate.

use std::path::Path;
use std::process::Command;

#[test]
fn misuse_does_not_compile() {
    match other_words() {
        Some(why) => println!("skipped: misuse_does_not_compile: {why}"),
        None => trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs"),
    }
}

/// Why this compiler would reject the same programs in other words than those that are expected.
fn other_words() -> Option<&'static str> {
    let rustc = |arg: &[&str]| {
        let output = Command::new("rustc").args(arg).output().expect("a compiler");
        String::from_utf8(output.stdout).expect("a compiler that speaks UTF-8")
    };
    if !rustc(&["--version"]).starts_with(concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"))) {
        return Some("the expected messages are those of the oldest supported Rust");
    }
    let sysroot = rustc(&["--print", "sysroot"]);
    let sources = Path::new(sysroot.trim()).join("lib/rustlib/src");
    sources.exists().then_some("with the component rust-src, messages quote the standard library")
}
