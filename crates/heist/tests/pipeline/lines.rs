//! The contract of lines: those of a reader, one by one or in blocks, each once, whatever the reader returns at a time. What is no
//! line is an error with its number, after the lines before it.

use std::error::Error;
use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use heist::CancelToken;
use heist::pipeline::{LineBlock, LineError, Pipeline, PipelineError, Stage};

use crate::common::pipeline::{assert_cancelled, ways};
use crate::common::{Kind, for_every_strategy};

for_every_strategy! {
    as_the_standard_library,
    in_blocks,
    numbers,
    long_lines,
    too_long,
    as_long_as_a_block,
    limit_before_or_after_the_size,
    invalid,
    invalid_at_the_beginning,
    invalid_with_weights,
    batch_of_an_invalid_line,
    any_bytes,
    reader_fails,
    interrupted,
    endless_readers,
    reader_panics,
    kept_blocks,
}

/// A reader that returns a few bytes at a time, and then an error if it has one.
struct Slow<'t> {
    text: &'t [u8],
    most: usize,
    error: Option<io::ErrorKind>,
}

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.most.min(buffer.len());
        match (&mut self.text).take(most as u64).read(buffer)? {
            0 => self.error.map_or(Ok(0), |kind| Err(kind.into())),
            bytes => Ok(bytes),
        }
    }
}

fn slow(text: &[u8], most: usize) -> Slow<'_> {
    Slow { text, most, error: None }
}

const TEXTS: [&str; 12] = [
    "",
    "\n",
    "\r\n",
    "\r",
    "one",
    "one\n",
    "one\r\ntwo\r\n",
    "one\n\n\ntwo",
    "\n\none\r\n\r\n",
    "one\rtwo\nthree\r",
    "sätze\nmit ümläuten\n日本\r\nend",
    "a\nlonger line than the others are\nb\nc\nd\n",
];

/// Strings as `BufRead::lines` returns them.
fn as_the_standard_library(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        for (text, most) in TEXTS.iter().flat_map(|text| [1, 3, 1000].map(|most| (text, most))) {
            let mut lines = Vec::new();
            let pipeline = Pipeline::lines(slow(text.as_bytes(), most)).batch(2);
            let report = way.of(pipeline).run(&pool, |line| lines.push(line)).expect("lines");
            let expected: Vec<_> =
                io::BufRead::lines(text.as_bytes()).map(|line| line.expect("text")).collect();
            assert_eq!(report.batches, expected.len().div_ceil(2) as u64, "full batches");
            way.assert_all(lines, &sorted_unless(way.ordered, expected));
        }
    }
}

/// `assert_all` sorts what came without an order, and compares it with a sorted list.
fn sorted_unless<T: Ord>(ordered: bool, mut lines: Vec<T>) -> Vec<T> {
    if !ordered {
        lines.sort();
    }
    lines
}

fn in_blocks(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        for (text, most) in TEXTS.iter().flat_map(|text| [1, 3, 1000].map(|most| (text, most))) {
            for size in [1, 4, 1 << 18] {
                let mut lines = Vec::new();
                let blocks = Pipeline::line_blocks(slow(text.as_bytes(), most)).block_size(size);
                let sink = |block: LineBlock| {
                    assert_eq!(block.count() as usize, block.lines().count());
                    assert!(!block.text().is_empty());
                    lines.extend(block.lines().map(str::to_owned));
                };
                way.of(blocks).run(&pool, sink).expect("lines");
                let expected =
                    io::BufRead::lines(text.as_bytes()).map(|line| line.expect("text")).collect();
                way.assert_all(lines, &sorted_unless(way.ordered, expected));
            }
        }
    }
}

fn numbers(kind: Kind) {
    let text: String = (1..=1000).map(|n| format!("{n}\n")).collect();
    let pool = kind.pool(2);
    for way in ways() {
        let mut count = 0;
        let blocks = Pipeline::line_blocks(slow(text.as_bytes(), 77)).block_size(50);
        let sink = |block: LineBlock| {
            for (number, line) in block.numbered_lines() {
                assert_eq!(number.to_string(), line, "{way:?}");
                count += 1;
            }
        };
        way.of(blocks).run(&pool, sink).expect("lines");
        assert_eq!(count, 1000, "{way:?}");
    }
}

/// Lines that are longer than a block, between short ones.
fn long_lines(kind: Kind) {
    let pool = kind.pool(2);
    let lines: Vec<String> = (0..60).map(|n| "x".repeat((n % 7) * (n % 11) * 9)).collect();
    let text = lines.join("\n");
    for way in ways() {
        let mut found = Vec::new();
        let blocks = Pipeline::line_blocks(slow(text.as_bytes(), 101)).block_size(16);
        let sink = |block: LineBlock| found.extend(block.lines().map(str::to_owned));
        way.of(blocks).run(&pool, sink).expect("lines");
        way.assert_all(found, &sorted_unless(way.ordered, lines.clone()));
    }
}

/// Returns the error of the source with which a run has failed, if it is of that type.
fn cause<E: Error + 'static>(error: &PipelineError) -> Option<&E> {
    match error {
        PipelineError::Failed { source, .. } => source.downcast_ref(),
        _ => None,
    }
}

fn too_long(kind: Kind) {
    let pool = kind.pool(2);
    let text = format!("a\nb\n{}\nc\n", "x".repeat(100));
    for way in ways() {
        for (limit, fits) in [(8, false), (100, false), (101, true), (200, true)] {
            let mut lines = 0;
            let blocks = Pipeline::line_blocks(slow(text.as_bytes(), 9)).block_size(8);
            let sink = |block: LineBlock| lines += block.count();
            let run = way.of(blocks.largest_block(limit)).run(&pool, sink);
            match run {
                Ok(_) => assert!(fits && lines == 4, "{way:?}"),
                Err(error) => {
                    assert!(!fits, "{way:?}, {limit}: {error}");
                    assert_eq!(error.stage(), Some(Stage::Source));
                    assert_eq!(cause(&error), Some(&LineError::TooLong { line: 3, limit }));
                    assert!(lines == 2 || !way.ordered && lines < 2, "{way:?}");
                }
            }
        }
    }
}

/// The last line may fill the largest block, because it has no line end.
fn as_long_as_a_block(kind: Kind) {
    let pool = kind.pool(2);
    let text = "a\nxxxxxxx";
    for way in ways() {
        for (most, size) in [(1, 7), (3, 2), (100, 7), (100, 100)] {
            let reader = || Interrupted(slow(text.as_bytes(), most), false);
            let run = |limit: usize| {
                let mut lines = Vec::new();
                let blocks = Pipeline::line_blocks(reader()).block_size(size).largest_block(limit);
                let sink = |block: LineBlock| lines.extend(block.lines().map(str::to_owned));
                way.of(blocks).run(&pool, sink).map(|_| lines)
            };
            let lines = run(7).expect("lines");
            way.assert_all(lines, &["a", "xxxxxxx"].map(str::to_owned));
            let error = run(6).expect_err("a fault");
            assert_eq!(cause(&error), Some(&LineError::TooLong { line: 2, limit: 6 }), "{way:?}");
        }
    }
}

/// A limit holds whether the size of a block is set before it or after it, and a large size alone is no mistake.
fn limit_before_or_after_the_size(kind: Kind) {
    let pool = kind.pool(1);
    let text = "x".repeat(100);
    let blocks = || Pipeline::line_blocks(text.as_bytes());
    for blocks in
        [blocks().largest_block(9).block_size(50), blocks().block_size(50).largest_block(9)]
    {
        let error = blocks.run(&pool, drop::<LineBlock>).expect_err("a fault");
        assert_eq!(cause(&error), Some(&LineError::TooLong { line: 1, limit: 9 }));
    }
    let blocks = blocks().largest_block(100).block_size(50);
    assert_eq!(blocks.run(&pool, drop::<LineBlock>).expect("a line").items, 1);
}

/// The good lines before a bad one are delivered with weights as well.
fn invalid_with_weights(kind: Kind) {
    let pool = kind.pool(2);
    let text = b"one\ntwo\nth\xffree\nfour\n";
    for way in ways() {
        for (most, limit) in
            [1, 5, 1000].into_iter().flat_map(|most| [1, 1000].map(|limit| (most, limit)))
        {
            let (mut lines, mut seen) = (Vec::new(), Vec::new());
            let pipeline = Pipeline::lines(slow(text, most)).weigh(String::len, limit);
            let one_by_one = way.of(pipeline).run(&pool, |line| lines.push(line));
            let blocks = Pipeline::line_blocks(slow(text, most)).batch(3);
            let blocks = blocks.weigh(|block| block.text().len(), limit);
            let sink = |block: LineBlock| seen.extend(block.lines().map(str::to_owned));
            let in_blocks = way.of(blocks).run(&pool, sink);
            for error in [one_by_one, in_blocks].map(|run| run.expect_err("a fault")) {
                assert_eq!(cause(&error), Some(&LineError::InvalidUtf8 { line: 3 }), "{way:?}");
            }
            for lines in [lines, seen] {
                if way.ordered {
                    assert_eq!(lines, ["one", "two"], "{way:?}");
                }
                assert!(lines.iter().all(|line| line == "one" || line == "two"), "{way:?}");
            }
        }
    }
}

/// The error of a block is not that of the block before it, which has been delivered.
fn batch_of_an_invalid_line(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let blocks = Pipeline::line_blocks(&b"a\n\xff\n"[..]);
        let error = way.of(blocks).run(&pool, drop::<LineBlock>).expect_err("a fault");
        assert_eq!((error.batch(), error.item()), (Some(1), Some(1)), "{way:?}");
        let blocks = Pipeline::line_blocks(&b"a\n\xff\n"[..]).weigh(|_| 1, 5);
        let error = way.of(blocks).run(&pool, drop::<LineBlock>).expect_err("a fault");
        assert_eq!((error.batch(), error.item()), (Some(1), Some(1)), "{way:?}");
    }
}

fn invalid(kind: Kind) {
    let pool = kind.pool(2);
    let text = b"one\ntwo\nth\xffree\nfour\n";
    for way in ways() {
        for most in [1, 5, 1000] {
            let mut lines = Vec::new();
            let pipeline = Pipeline::lines(slow(text, most)).batch(1);
            let error = way.of(pipeline).run(&pool, |line| lines.push(line)).expect_err("a fault");
            assert_eq!(cause(&error), Some(&LineError::InvalidUtf8 { line: 3 }), "{way:?}");
            if way.ordered {
                assert_eq!(lines, ["one", "two"]);
            }
            let mut lines = Vec::new();
            let blocks = Pipeline::line_blocks(slow(text, most));
            let sink = |block: LineBlock| lines.extend(block.lines().map(str::to_owned));
            let error = way.of(blocks).run(&pool, sink).expect_err("a fault");
            assert_eq!(cause(&error), Some(&LineError::InvalidUtf8 { line: 3 }), "{way:?}");
            if way.ordered {
                assert_eq!(lines, ["one", "two"]);
            }
        }
    }
}

/// The end of the input in the middle of a character is no text either.
fn invalid_at_the_beginning(kind: Kind) {
    let pool = kind.pool(2);
    for text in [&b"\xff"[..], b"\xe6\x97", b"\xe6\n\x97"] {
        for way in ways() {
            let run = way.of(Pipeline::lines(text)).run(&pool, |line| panic!("{line}"));
            let error = run.expect_err("a fault");
            assert_eq!(cause(&error), Some(&LineError::InvalidUtf8 { line: 1 }), "{way:?}");
        }
    }
}

fn any_bytes(kind: Kind) {
    let pool = kind.pool(2);
    let text = b"\xff\xfe\n\0\r\n\xe6";
    for way in ways() {
        let mut lines = Vec::new();
        let blocks = Pipeline::byte_line_blocks(slow(text, 2));
        let sink = |block: LineBlock<[u8]>| lines.extend(block.lines().map(<[u8]>::to_vec));
        way.of(blocks).run(&pool, sink).expect("lines");
        let expected = [&b"\xff\xfe"[..], b"\0", b"\xe6"].map(<[u8]>::to_vec).to_vec();
        way.assert_all(lines, &sorted_unless(way.ordered, expected));
    }
}

/// The whole lines before the error are delivered, and the incomplete one is not.
fn reader_fails(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let kind = io::ErrorKind::ConnectionReset;
        let reader = || Slow { text: b"one\ntwo\nthr", most: 2, error: Some(kind) };
        let (mut lines, seen) = (Vec::new(), Mutex::new(Vec::new()));
        let error = way.of(Pipeline::lines(reader())).run(&pool, |line| lines.push(line));
        let blocks = way.of(Pipeline::line_blocks(reader()));
        let other = blocks.run(&pool, |block: LineBlock| {
            seen.lock().unwrap().extend(block.lines().map(str::to_owned));
        });
        for error in [error, other].map(|run| run.expect_err("a fault")) {
            assert_eq!(cause(&error).map(io::Error::kind), Some(kind), "{way:?}");
        }
        if way.ordered {
            assert_eq!(lines, ["one", "two"]);
            assert_eq!(seen.into_inner().unwrap(), ["one", "two"]);
        }
    }
}

/// Every second read is interrupted, which is no error.
struct Interrupted<R>(R, bool);

impl<R: Read> Read for Interrupted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 { Err(io::ErrorKind::Interrupted.into()) } else { self.0.read(buffer) }
    }
}

fn interrupted(kind: Kind) {
    let pool = kind.pool(1);
    let mut lines = Vec::new();
    let reader = Interrupted(slow(b"one\ntwo\n", 3), false);
    Pipeline::lines(reader).ordered().run(&pool, |line| lines.push(line)).expect("lines");
    assert_eq!(lines, ["one", "two"]);
}

/// A reader that goes on for very long without a line end. It cancels the run at its third read.
struct Endless<'t> {
    token: &'t CancelToken,
    reads: &'t AtomicUsize,
    interrupted: bool,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.reads.fetch_add(1, Ordering::AcqRel) {
            2 => self.token.cancel(),
            100 => return Ok(0),
            _ => {}
        }
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        buffer[0] = b'.';
        Ok(1)
    }
}

/// A run ends between two reads of an incomplete line.
fn endless_readers(kind: Kind) {
    let pool = kind.pool(2);
    for (way, interrupted) in ways().flat_map(|way| [false, true].map(|kind| (way, kind))) {
        for how in 0..4 {
            let (token, reads) = (CancelToken::new(), AtomicUsize::new(0));
            let reader = Endless { token: &token, reads: &reads, interrupted };
            let ended = match how {
                0 => way.of(Pipeline::lines(reader).cancel_on(&token)).run(&pool, drop),
                1 => {
                    let blocks = Pipeline::line_blocks(reader).cancel_on(&token);
                    way.of(blocks).run(&pool, drop::<LineBlock>)
                }
                2 => {
                    let lines = Pipeline::lines(reader).cancel_on(&token);
                    way.of(lines.flush_after(Duration::MAX)).run(&pool, drop)
                }
                _ => {
                    let blocks = Pipeline::line_blocks(reader).cancel_on(&token);
                    way.of(blocks).weigh(|_| 1, 5).run(&pool, drop::<LineBlock>)
                }
            };
            assert_cancelled(ended);
            assert_eq!(reads.into_inner(), 3, "{way:?} {how}");
        }
    }
}

struct Bomb;

impl Read for Bomb {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        panic!("planned")
    }
}

fn reader_panics(kind: Kind) {
    let pool = kind.pool(2);
    for way in ways() {
        let error = way.of(Pipeline::line_blocks(Bomb)).run(&pool, drop::<LineBlock>);
        assert_eq!(error.expect_err("a panic").stage(), Some(Stage::Source), "{way:?}");
    }
}

/// Blocks outlive the run, and the buffers of dropped ones are used again meanwhile.
fn kept_blocks(kind: Kind) {
    let text: String = (1..=3000).map(|n| format!("line {n}\n")).collect();
    let pool = kind.pool(2);
    let mut kept = Vec::new();
    let blocks = Pipeline::line_blocks(text.as_bytes()).block_size(100).ordered();
    let mut place = 0;
    let sink = |block: LineBlock| {
        place += 1;
        if place % 3 == 0 {
            kept.push(block);
        }
    };
    blocks.run(&pool, sink).expect("lines");
    for block in &kept {
        for (number, line) in block.numbered_lines() {
            assert_eq!(line, format!("line {number}"));
        }
        assert_eq!(block.into_iter().count() as u64, block.count());
    }
}
