//! Cargo asks for a build script where there is a `links`. There is nothing to build.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
