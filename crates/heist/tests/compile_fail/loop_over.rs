//! A loop runs over what can be split and sent. The message says what to write instead.

use heist::parallel;
use std::cell::Cell;
use std::collections::HashMap;

fn main() {
    let prices: HashMap<&str, u32> = HashMap::new();
    parallel::for_each(&prices, |(_, price)| assert!(*price > 0));

    let mut numbers = vec![1_u8, 2, 3];
    parallel::for_each(numbers.iter(), |number| assert!(*number > 0));
    parallel::for_each(numbers.chunks_mut(2), |chunk| chunk.reverse());

    parallel::map(0.0..1.0_f64, |x| x * x);

    let cells = [Cell::new(1_u16)];
    parallel::for_each(&cells, |cell| cell.set(2));
}
