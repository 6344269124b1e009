//! Compiles the programs for oneTBB, if that was asked for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "tbb")]
    tbb();
}

#[cfg(feature = "tbb")]
fn tbb() {
    const SOURCE: &str = "src/fork/tbb/programs.cpp";
    println!("cargo::rerun-if-changed={SOURCE}");
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
