//! Runs a process and tells what it took.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use libc::{rusage, timeval, wait4};

use crate::cases::Output;

/// What a process took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    /// User and system time of all its threads.
    pub(crate) cpu: Duration,
    /// The largest resident size, in bytes. The system counts a new process as large as the one that starts it until its
    /// program is loaded, so this is never less than the size of this program: some 3 MB.
    pub(crate) memory: u64,
}

/// Runs a program, writes its output to a file, and waits for its end. If `pools` is given, pools of our rayon-core log to it.
pub(crate) fn run(
    program: &Path,
    arguments: &[PathBuf],
    output: &Path,
    pools: Option<&Path>,
) -> Result<Cost, String> {
    let explain = |error: io::Error| format!("cannot run {} ({error})", program.display());
    let mut command = Command::new(program);
    // A report of progress on a terminal would be measured too.
    let errors = output.with_extension("stderr");
    let [stdout, stderr] = [output, &errors].map(File::create);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(stdout.map_err(explain)?).stderr(stderr.map_err(explain)?);
    command.env_remove("HEIST_RAYON_LOG");
    if let Some(pools) = pools {
        command.env("HEIST_RAYON_LOG", pools);
    }
    let begun = Instant::now();
    let child = command.spawn().map_err(explain)?;
    let (status, used) = wait(child.id()).map_err(explain)?;
    let wall = begun.elapsed();
    if !status.success() {
        let text = std::fs::read(errors).unwrap_or_default();
        return Err(format!(
            "{} failed: {status}\n{}",
            program.display(),
            String::from_utf8_lossy(&text)
        ));
    }
    Ok(Cost {
        wall,
        cpu: duration(used.ru_utime) + duration(used.ru_stime),
        memory: used.ru_maxrss as u64 * if cfg!(target_os = "macos") { 1 } else { 1_024 },
    })
}

/// Waits for the end of a process. `Child::wait` does not tell what the process used.
fn wait(process: u32) -> io::Result<(ExitStatus, rusage)> {
    let mut status = 0;
    // SAFETY: the structure consists of integers, for which zero is a valid value.
    let mut used: rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both places outlive the call.
        let found = unsafe { wait4(process as libc::pid_t, &raw mut status, 0, &raw mut used) };
        if found >= 0 {
            return Ok((ExitStatus::from_raw(status), used));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn duration(time: timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000)
}

/// Returns a checksum of an output, by FNV-1a. The file is read in pieces, because of what [`Cost::memory`] says.
pub(crate) fn checksum(file: &Path, output: Output) -> io::Result<u64> {
    let mut reader = BufReader::new(File::open(file)?);
    let hash = |start, bytes: &[u8]| {
        bytes
            .iter()
            .fold(start, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    };
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    match output {
        Output::Exact => {
            let mut sum = START;
            let mut piece = [0; 4_096];
            loop {
                match reader.read(&mut piece)? {
                    0 => return Ok(sum),
                    length => sum = hash(sum, &piece[..length]),
                }
            }
        }
        // The sum does not depend on the order.
        Output::Lines => reader.lines().try_fold(0u64, |sum, line| {
            let line = line?;
            Ok(if line.starts_with('#') {
                sum
            } else {
                sum.wrapping_add(hash(START, line.as_bytes()))
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &str, script: &str) -> (Result<Cost, String>, PathBuf) {
        let out =
            std::env::temp_dir().join(format!("heist-programs-{}-{name}", std::process::id()));
        let cost = run(Path::new("sh"), &["-c".into(), script.into()], &out, None);
        std::fs::remove_file(out.with_extension("stderr")).unwrap();
        (cost, out)
    }

    #[test]
    fn a_process_takes_time_and_memory() {
        let (cost, out) = shell("cost", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
        std::fs::remove_file(out).unwrap();
        let cost = cost.unwrap();
        assert!(
            cost.cpu > Duration::ZERO && cost.wall > Duration::ZERO && cost.memory > 0,
            "{cost:?}"
        );
    }

    #[test]
    fn a_failing_process_is_an_error() {
        let (cost, out) = shell("fails", "echo why >&2; exit 3");
        std::fs::remove_file(out).unwrap();
        assert!(cost.unwrap_err().contains("sh failed: exit status: 3\nwhy\n"));
    }

    #[test]
    fn lines_are_compared_in_any_order_and_without_the_head() {
        let of = |name, text: &str, output| {
            let (_, out) = shell(name, &format!("printf '{text}'"));
            let sum = checksum(&out, output).unwrap();
            std::fs::remove_file(out).unwrap();
            sum
        };
        assert_eq!(
            of("a", "# 1\\nx\\ny\\n", Output::Lines),
            of("b", "# 2\\ny\\nx\\n", Output::Lines)
        );
        assert_ne!(of("c", "x\\ny\\n", Output::Lines), of("d", "x\\nz\\n", Output::Lines));
        assert_ne!(of("e", "x\\ny\\n", Output::Exact), of("f", "y\\nx\\n", Output::Exact));
    }
}
