//! Messages of panics, and silence for panics that a test causes on purpose.

use std::any::Any;
use std::panic;
use std::sync::Once;

/// Returns the message of a panic, or an empty string if the payload is not a text.
#[must_use]
pub fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("")
}

/// Keeps panics that tests cause on purpose out of the output: those whose message begins with "planned",
/// those of items that panic when they are dropped, and those of a `Pool::stop` that would wait for
/// itself.
pub fn silence_planned_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let message = panic_message(info.payload());
            // The payload of an item that panics when it is dropped is its number.
            let planned = info.payload().is::<usize>()
                || ["planned", "Pool::stop"].iter().any(|known| message.starts_with(known));
            if !planned {
                report(info);
            }
        }));
    });
}
