//! Where the numbers come from: without that they mean nothing to anyone else.

use std::fs;
use std::process::Command;
use std::thread;

/// What the machine says of itself, by name. Unknown is empty.
pub(crate) fn look() -> Vec<(&'static str, String)> {
    let git = ["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty", "--abbrev=12"];
    let cores = thread::available_parallelism().map_or(0, Into::<usize>::into);
    vec![
        ("cpu", cpu_model(&read("/proc/cpuinfo")).into()),
        ("cores", cores.to_string()),
        ("kernel", read("/proc/sys/kernel/osrelease").trim().into()),
        ("rustc", output("rustc", &["-V"])),
        ("commit", output("git", &git)),
    ]
}

fn cpu_model(cpuinfo: &str) -> &str {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    line.split_once(':').map_or("", |(_, name)| name.trim())
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn output(program: &str, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().into()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_core_names_the_model() {
        let text = "processor\t: 0\nmodel name\t: Fast CPU\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(cpu_model(text), "Fast CPU");
        assert_eq!(cpu_model(""), "");
    }
}
