//! Decides whether the messages recorded in `tests/compile_fail` of a crate can be compared with those of
//! this compiler.

use std::path::Path;
use std::process::Command;

/// The toolchain with which the messages were recorded. Other versions word them differently.
pub const RECORDED_WITH: &str = "1.95";

/// Returns why this compiler words the expected messages differently, or `None` if they can be compared.
///
/// # Panics
///
/// Panics if there is no `rustc` to ask.
#[must_use]
pub fn messages_differ() -> Option<&'static str> {
    let rustc = |args: &[&str]| {
        let output = Command::new("rustc").args(args).output().expect("rustc can be started");
        String::from_utf8(output.stdout).expect("rustc prints UTF-8")
    };
    if !rustc(&["--version"]).starts_with(&format!("rustc {RECORDED_WITH}.")) {
        return Some("the expected messages were recorded with another version of Rust");
    }
    let sysroot = rustc(&["--print", "sysroot"]);
    let sources = Path::new(sysroot.trim()).join("lib/rustlib/src");
    sources.exists().then_some("with the component rust-src, messages quote the standard library")
}
