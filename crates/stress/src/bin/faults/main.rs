//! `faults`: runs heist while what it relies on fails: threads, memory, destructors, the process itself.
//!
//! Each case runs in a process of its own, which is this program started again, and is ended if it hangs.
//! docs/RELIABILITY.md has the table of all faults, with the case or the test that causes each of them.

mod alloc;
mod case;
mod endings;
mod forks;
mod memory;
mod panics;
mod scale;
mod stalls;
mod threads;
mod work;

use std::process::ExitCode;

use case::{Case, Size};

#[global_allocator]
static ALLOCATOR: alloc::Failing = alloc::Failing;

const USAGE: &str = "\
usage: faults [CASE]... [--long]
       faults --list

A CASE is a part of a name. Without one, all cases run.

  --long  more repetitions, larger pools and queues: some minutes
  --list  print the names of the cases

Exit codes: 0 every case ended as it should; 1 a case failed or hangs; 2 usage.";

/// Every case, in the order in which they run.
fn cases() -> Vec<Case> {
    let groups = [
        forks::cases(),
        threads::cases(),
        memory::cases(),
        panics::cases(),
        endings::cases(),
        stalls::cases(),
        scale::cases(),
    ];
    groups.into_iter().flatten().collect()
}

fn main() -> ExitCode {
    let (mut names, mut size) = (Vec::new(), Size::Short);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--long" => size = Size::Long,
            "--list" => {
                cases().iter().for_each(|case| println!("{}", case.name));
                return ExitCode::SUCCESS;
            }
            // For this program itself.
            "--run" => {
                let name = words.next().unwrap_or_default();
                let case = cases().into_iter().find(|case| case.name == name);
                let case = case.unwrap_or_else(|| panic!("there is no case `{name}`"));
                (case.run)(size);
                return ExitCode::SUCCESS;
            }
            name if !name.starts_with('-') => names.push(name.to_owned()),
            other => {
                eprintln!("faults: `{other}` is no option\n\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let chosen =
        |case: &Case| names.is_empty() || names.iter().any(|name| case.name.contains(name));
    let cases: Vec<_> = cases().into_iter().filter(chosen).collect();
    if cases.is_empty() {
        eprintln!("faults: no case has such a name\n\n{USAGE}");
        return ExitCode::from(2);
    }
    let failed = cases.iter().filter(|case| !case.passes(size)).count();
    if failed == 0 {
        println!("faults: {} cases ended as they should", cases.len());
        return ExitCode::SUCCESS;
    }
    eprintln!("faults: {failed} of {} cases failed", cases.len());
    ExitCode::FAILURE
}
