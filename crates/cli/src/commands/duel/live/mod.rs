//! The live view: a thread that looks at the pool that is measured, and draws a few lines of the terminal.
//!
//! It must cost next to nothing, for the cores that it runs on are being measured: it sleeps almost always, copies a few counters when
//! it looks, and draws only every third time.

mod echo;
mod strip;
mod view;

use std::io::{self, BufWriter, Stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ratatui::crossterm::terminal;
use ratatui::layout::Rect;

use self::echo::Silence;
use self::strip::Strip;
use super::board::Board;
use crate::interrupt::{self, UndoGuard};
use crate::{out, style};

/// From one look at the counters to the next.
const LOOK: Duration = Duration::from_millis(40);

/// So many looks a frame: eight frames a second.
const LOOKS_A_FRAME: usize = 3;

/// More bytes than a frame has.
const FRAME: usize = 1 << 16;

/// Draws until it is dropped; then the lines are empty again.
pub(super) struct Live {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// `None` if stderr is no terminal on which one could draw, or a tiny one, or no thread is to be had.
    pub(super) fn start(board: Arc<Mutex<Board>>) -> Option<Self> {
        let drawable = out::is_drawable() && echo::in_foreground();
        let room = terminal::size().is_ok_and(|(columns, rows)| columns >= 40 && rows >= 12);
        if !drawable || !room {
            return None;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("heist-live".to_owned())
            .spawn(move || Artist::new(board).work(&stopped))
            .ok()?;
        Some(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Ordering: relaxed. Nothing else is told by it.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic in there has lost a picture, no measurement.
            let _ = thread.join();
        }
    }
}

/// The thread that draws.
struct Artist {
    board: Arc<Mutex<Board>>,
    /// A frame is one write.
    strip: Strip<BufWriter<Stderr>>,
    /// After the strip: what it leaves is as it was before.
    _terminal: UndoGuard,
}

impl Artist {
    fn new(board: Arc<Mutex<Board>>) -> Self {
        let strip = Strip::new(BufWriter::with_capacity(FRAME, io::stderr()), style::err().is_on());
        let silence = Silence::begin();
        let terminal = interrupt::undo(move || {
            drop(silence);
            // If the terminal is gone, there is nothing to clear.
            let _ = strip::erase(&mut io::stderr());
        });
        Self { board, strip, _terminal: terminal }
    }

    /// Ends when it is told to, at Ctrl-C, and when the terminal is gone.
    fn work(mut self, stop: &AtomicBool) {
        for looks in 0_usize.. {
            if stop.load(Ordering::Relaxed) || interrupt::seen() {
                return;
            }
            lock(&self.board).look(heist_bench::live());
            if looks.is_multiple_of(LOOKS_A_FRAME) && self.draw().is_err() {
                return;
            }
            thread::park_timeout(LOOK);
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let (columns, rows) = terminal::size()?;
        let frame = {
            let board = lock(&self.board);
            let area = Rect::new(0, 0, columns, view::height(board.lanes.lanes.len(), rows));
            view::frame(&board, board.start.elapsed(), area)
        };
        self.strip.paint(frame)
    }
}

/// Also after a panic of the other one: there is no state in between.
pub(super) fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}
