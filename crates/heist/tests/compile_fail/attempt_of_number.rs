//! The closure of `try_for_each` can fail, and returns nothing else.

fn main() {
    heist::parallel::try_for_each(0..10_u32, |n| n + 1);
}
