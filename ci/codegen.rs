//! The program whose instructions `ci/codegen.sh` counts: joins that no other worker wants, and nothing else.

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let n = arguments[1].parse().expect("a number");
    let pool = heist::Pool::builder().workers(1).build().expect("a thread can be had");
    println!("{}", pool.install(|| counted_joins(n)));
}

/// Only what runs in here is counted.
#[inline(never)]
fn counted_joins(n: u64) -> u64 {
    fib(n)
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = heist::join(|| fib(n - 1), || fib(n - 2));
    a + b
}
