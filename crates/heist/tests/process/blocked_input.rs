//! A cancelled pipeline ends while its standard input blocks, if the input is read as the documentation of `cancel_on` says.

use std::io::Read;
use std::num::NonZero;
use std::process::Stdio;
use std::thread;

use heist::pipeline::{LineBlock, Pipeline, PipelineError};
use heist::{CancelToken, Pool};
use heist_testkit::watchdog::watched;
use heist_testkit::{process, test_path};

/// The programs that the other tests start. This is not a test of its own.
#[test]
#[ignore = "started by the others"]
fn program() {
    let pool = Pool::builder().workers(2).build().expect("a pool");
    let token = CancelToken::new();
    let error = match process::part().as_deref() {
        Some("fed") => {
            let (sender, lines) = Pipeline::fed(NonZero::<usize>::MIN);
            // The thread is left in the read, which nothing interrupts.
            thread::spawn(move || {
                std::io::stdin().lines().try_for_each(|line| sender.send(line).ok())
            });
            let lines = lines.cancel_on(&token).try_map(|line| line);
            lines.run(&pool, |line| cancel_at(&line, &token)).expect_err("a cancellation")
        }
        Some("results") => {
            let blocks = Pipeline::line_blocks(std::io::stdin());
            let mut results = blocks.cancel_on(&token).results(&pool).expect("a start");
            let mut next = || results.next().expect("a result");
            let block: LineBlock = next().expect("no error");
            cancel_at(block.lines().next().expect("a line"), &token);
            next().expect_err("a cancellation")
        }
        other => panic!("{other:?} is no program"),
    };
    assert!(matches!(error, PipelineError::Cancelled { .. }), "{error}");
    println!("ended");
    // A worker or a thread is left in the read.
    std::process::exit(0);
}

fn cancel_at(line: &str, token: &CancelToken) {
    assert_eq!(line, "a line");
    token.cancel();
}

/// Sends one line, and keeps the input open until the program has ended.
fn ends_while_it_blocks(part: &str) {
    use std::io::Write;

    let mut program = process::command(test_path!("program"), part);
    program.arg("--ignored").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().expect("a child process");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"a line\n").expect("a reader");
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
    assert!(child.wait().expect("an end").success(), "{text}");
    assert!(text.contains("ended"), "{text}");
    drop(input);
}

#[test]
fn fed_from_a_thread() {
    watched(test_path!("fed_from_a_thread"), || ends_while_it_blocks("fed"));
}

#[test]
fn results_do_not_wait() {
    watched(test_path!("results_do_not_wait"), || ends_while_it_blocks("results"));
}
