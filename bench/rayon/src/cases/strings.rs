//! Text: lines, and the words in them.

use std::hint::black_box;

use rayon::prelude::*;

use super::{Case, Run, batch};
use harness::random::numbers;

pub(super) fn cases() -> Vec<Case> {
    vec![Case::outside("lines", "par_lines: words in 20,000 lines", |_| lines())]
}

fn lines() -> Run {
    let mut text = String::new();
    let mut expected = 0;
    for number in numbers(20_000) {
        let words = 5 + number % 16;
        for word in 0..words {
            let length = 1 + (number >> (2 * word)) % 10;
            text.extend((0..length).map(|_| 'x'));
            text.push(' ');
        }
        text.push('\n');
        expected += words as usize;
    }
    batch(1, expected, move || {
        black_box(&text).par_lines().map(|line| line.split_whitespace().count()).sum::<usize>()
    })
}
