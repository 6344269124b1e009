//! The program whose instructions `ci/codegen.sh` counts: joins that no other worker wants, or tasks that are spawned and joined by
//! the only worker, and nothing else.

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let n = arguments[2].parse().expect("a number");
    let pool = heist::Pool::builder().workers(1).build().expect("a thread can be had");
    let counted = match &*arguments[1] {
        "join" => counted_joins,
        _ => counted_spawns,
    };
    println!("{}", pool.install(|| counted(n)));
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

/// Or in here.
#[inline(never)]
fn counted_spawns(n: u64) -> u64 {
    (0..n).map(|n| heist::spawn(move || n).join().expect("a result")).sum()
}
