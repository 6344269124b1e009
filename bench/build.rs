//! Notes what the program is built from, for its records; compiles the programs for oneTBB, if that was asked for.

use std::env;
use std::path::Path;
use std::process::Command;

/// What is measured: after a change of it, the commit is asked for again, as the checkout may have become another one.
const MEASURED: [&str; 8] = [
    "build.rs",
    "src",
    "harness/src",
    "queues/src",
    "../crates/heist/src",
    "../crates/deque/src",
    "../Cargo.toml",
    "../Cargo.lock",
];

fn main() {
    MEASURED.iter().for_each(|path| watch(path));
    commit();
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    println!("cargo::rustc-env=HEIST_BENCH_RUSTC={}", output(&compiler, &["-V"]));
    #[cfg(feature = "tbb")]
    tbb();
}

/// Of the sources; empty where there is no git.
fn commit() {
    let branch = git(&["symbolic-ref", "-q", "HEAD"]);
    // There is none if a commit was checked out by its number.
    let names = ["HEAD", "packed-refs", &branch].into_iter().filter(|name| !name.is_empty());
    for name in names {
        watch(&git(&["rev-parse", "--git-path", name]));
    }
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12"]);
    println!("cargo::rustc-env=HEIST_BENCH_COMMIT={commit}");
}

/// A path that is not there would have this run every time.
fn watch(path: &str) {
    if Path::new(path).exists() {
        println!("cargo::rerun-if-changed={path}");
    }
}

/// Without refreshing the index, whose change would have this run again.
fn git(arguments: &[&str]) -> String {
    output("git", &[&["--no-optional-locks"], arguments].concat())
}

/// Empty on an error.
fn output(program: &str, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().into()
        }
        _ => String::new(),
    }
}

#[cfg(feature = "tbb")]
fn tbb() {
    const SOURCE: &str = "src/workloads/fork/tbb/programs.cpp";
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").file(SOURCE);
    if let Err(error) = build.try_compile("heist_bench_tbb") {
        panic!(
            "{error}\n\nThe feature `tbb` needs a C++ compiler and the headers of oneTBB. On Debian:\n    \
             apt-get install libtbb-dev\n"
        );
    }
    println!("cargo::rustc-link-lib=tbb");
}
