//! Selects the virtual machine in the `sync` modules of the sources that a package compiles a second time.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=sim");
}
