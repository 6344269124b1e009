//! A deque drops its items, so they must live at least as long as it does.

use heist_deque::{Injector, bounded, growable, locked};

struct Loud<'a>(&'a str);

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        println!("{}", self.0);
    }
}

fn bounded() {
    let (worker, _) = bounded::new(8).unwrap();
    let text = String::from("gone before the deque");
    worker.push(Loud(&text)).unwrap();
}

fn growable() {
    let (worker, _) = growable::new();
    let text = String::from("gone before the deque");
    worker.push(Loud(&text));
}

fn locked() {
    let (worker, _) = locked::new();
    let text = String::from("gone before the deque");
    worker.push(Loud(&text));
}

fn injector() {
    let injector = Injector::new();
    let text = String::from("gone before the injector");
    injector.push(Loud(&text));
}

fn main() {
    bounded();
    growable();
    locked();
    injector();
}
