//! Does nothing. Cargo requires a build script for a crate with a `links` key.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
