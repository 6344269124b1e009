//! Passes the commit and the compiler to the program, for its records, and compiles the programs for oneTBB if the
//! feature `tbb` is on.

use std::env;
use std::path::Path;
use std::process::Command;

/// What is measured. If it changes, the commit is determined again, because the checkout may have changed as well.
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

/// Determines the commit of the sources; it is empty without git.
fn commit() {
    let branch = git(&["symbolic-ref", "-q", "HEAD"]);
    // There is no branch if a commit was checked out by its hash.
    let names = ["HEAD", "packed-refs", &branch].into_iter().filter(|name| !name.is_empty());
    for name in names {
        watch(&git(&["rev-parse", "--git-path", name]));
    }
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12"]);
    println!("cargo::rustc-env=HEIST_BENCH_COMMIT={commit}");
}

/// Runs this script again if the path changes. A path that does not exist would make it run every time.
fn watch(path: &str) {
    if Path::new(path).exists() {
        println!("cargo::rerun-if-changed={path}");
    }
}

/// Runs git without refreshing the index, whose change would make this script run again.
fn git(arguments: &[&str]) -> String {
    output("git", &[&["--no-optional-locks"], arguments].concat())
}

/// Returns the output of a program; empty on an error.
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
