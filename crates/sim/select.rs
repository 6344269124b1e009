//! Selects the virtual machine in the `sync` modules of the sources that a package compiles a second time.

fn main() {
    // Relative to each of the packages. A file that is missing counts as changed, and all would be compiled at each command.
    println!("cargo::rerun-if-changed=../select.rs");
    println!("cargo::rustc-cfg=sim");
}
