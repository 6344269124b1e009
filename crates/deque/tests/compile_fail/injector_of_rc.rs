//! Items change threads, so an injector is sent or shared only if its items may be sent. (Different
//! items, because the compiler reports the same error only once.)

use heist_deque::Injector;
use std::rc::Rc;
use std::thread;

fn main() {
    let injector = Injector::<Rc<u8>>::new();
    thread::scope(|scope| {
        scope.spawn(|| injector.steal().is_success());
    });

    let injector = Injector::<Rc<u16>>::new();
    thread::spawn(move || injector.steal().is_success());
}
