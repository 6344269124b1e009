//! The live view: a thread that samples the counters of the measured pool and draws some lines on the
//! terminal.
//!
//! It must cost next to nothing, because it runs on the processors that are being measured. It sleeps almost
//! always, copies a few counters per sample, and draws only with every third sample.

mod echo;
mod viewport;
mod view;

use std::io::{self, BufWriter, Stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossterm::terminal;
use ratatui_core::layout::Rect;

use self::echo::EchoOff;
use self::viewport::InlineViewport;
use super::progress::Progress;
use crate::interrupt::{self, UndoGuard};
use crate::{out, style};

/// The time between two samples of the counters.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(40);

/// The number of samples per frame, which makes eight frames per second.
const SAMPLES_PER_FRAME: usize = 3;

/// The size of the output buffer: more bytes than a frame has.
const FRAME_CAPACITY: usize = 1 << 16;

/// Draws until it is dropped, then clears its lines.
pub(super) struct Live {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Starts the thread. Returns `None` if stderr is not a terminal that can be drawn on, if it is too
    /// small, or if the thread cannot be started.
    pub(super) fn start(progress: Arc<Mutex<Progress>>) -> Option<Self> {
        let drawable = out::is_drawable() && echo::in_foreground();
        let room = terminal::size().is_ok_and(|(columns, rows)| columns >= 40 && rows >= 12);
        if !drawable || !room {
            return None;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("heist-live".to_owned())
            .spawn(move || Renderer::new(progress).run(&stopped))
            .ok()?;
        Some(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Ordering: relaxed. The flag publishes no other data.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread loses the picture, but no measurement.
            let _ = thread.join();
        }
    }
}

/// The state of the thread that draws.
struct Renderer {
    progress: Arc<Mutex<Progress>>,
    /// The buffer makes each frame one write.
    viewport: InlineViewport<BufWriter<Stderr>>,
    /// Declared after the viewport, so that it is dropped after the lines are cleared.
    _terminal: UndoGuard,
}

impl Renderer {
    fn new(progress: Arc<Mutex<Progress>>) -> Self {
        let viewport = InlineViewport::new(
            BufWriter::with_capacity(FRAME_CAPACITY, io::stderr()),
            style::err().is_on(),
        );
        let silence = EchoOff::begin();
        let terminal = interrupt::undo(move || {
            drop(silence);
            // If the terminal is gone, there is nothing to clear.
            let _ = viewport::erase(&mut io::stderr());
        });
        Self { progress, viewport, _terminal: terminal }
    }

    /// Draws until it is stopped, the run is interrupted, or the terminal is gone.
    fn run(mut self, stop: &AtomicBool) {
        for samples in 0_usize.. {
            if stop.load(Ordering::Relaxed) || interrupt::seen() {
                return;
            }
            lock(&self.progress).sample(heist_bench::live());
            if samples.is_multiple_of(SAMPLES_PER_FRAME) && self.draw().is_err() {
                return;
            }
            thread::park_timeout(SAMPLE_INTERVAL);
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let (columns, rows) = terminal::size()?;
        let frame = {
            let progress = lock(&self.progress);
            let area =
                Rect::new(0, 0, columns, view::height(progress.activity.workers.len(), rows));
            view::frame(&progress, progress.start.elapsed(), area)
        };
        self.viewport.paint(frame)
    }
}

/// Locks the progress even after a panic of the other thread: every update leaves it consistent.
pub(super) fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
