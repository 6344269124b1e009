//! What `install` returns may borrow from the caller, but not from the task.

use heist::Pool;

fn main() {
    let pool = Pool::builder().build().unwrap();
    let _text: &str = pool.install(|| {
        let text = String::from("of the task");
        &*text
    });
}
