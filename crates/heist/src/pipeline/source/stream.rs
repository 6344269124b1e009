//! Streams as sources: [`Pipeline::from_stream`].
//!
//! A stream that is pending has said whom to wake, and that is what a source says that is [`Pending`](Filled::Pending). So its waker
//! does step S6 of `../README.md`, as a sender does, and no thread waits for the stream.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};

use futures_core::stream::Stream;

use super::{Filled, NoReader, Source};
use crate::pipeline::Pipeline;
use crate::pipeline::config::Config;
use crate::pipeline::control::Control;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::steps::{BoxError, Same};
use crate::sync::{Arc, Mutex, ReceiverArc, lock};

/// The items of a stream. See [`Pipeline::from_stream`].
///
/// ```
/// use heist::pipeline::{Pipeline, StreamItems};
///
/// fn numbers(to: u32) -> Pipeline<StreamItems<smol::stream::Iter<std::ops::Range<u32>>>> {
///     Pipeline::from_stream(smol::stream::iter(0..to))
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// assert_eq!(numbers(5).run(&pool, |_| ())?.items, 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StreamItems<St>(Polled<St>);

/// The items of a stream of results. See [`Pipeline::try_from_stream`].
///
/// ```
/// use heist::pipeline::{Pipeline, TriedStream};
/// use smol::io::{AsyncBufRead, AsyncBufReadExt, Lines};
///
/// fn lines<R: AsyncBufRead + Unpin>(reader: R) -> Pipeline<TriedStream<Lines<R>>> {
///     Pipeline::try_from_stream(reader.lines())
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// assert_eq!(lines("a\nb\n".as_bytes()).run(&pool, |_| ())?.items, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TriedStream<St>(Polled<St>);

/// A stream, and what it wakes.
struct Polled<St> {
    stream: Pin<Box<St>>,
    alarm: ReceiverArc<Alarm>,
    waker: Waker,
}

/// Tells the run that the stream should be polled again, until the run has ended.
#[doc(hidden)]
pub struct Alarm(Mutex<Option<Arc<Control>>>);

impl Alarm {
    fn attach(&self, control: &Arc<Control>) {
        *lock(&self.0) = Some(Arc::clone(control));
    }

    fn detach(&self) {
        let control = lock(&self.0).take();
        drop(control);
    }
}

impl Wake for Alarm {
    fn wake(self: ReceiverArc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &ReceiverArc<Self>) {
        let control = lock(&self.0).clone();
        if let Some(control) = control {
            control.source_ready();
        }
    }
}

impl<St: Stream> Polled<St> {
    fn new(stream: St) -> Self {
        let alarm = ReceiverArc::new(Alarm(Mutex::new(None)));
        let waker = Waker::from(ReceiverArc::clone(&alarm));
        Self { stream: Box::pin(stream), alarm, waker }
    }

    /// Passes on the items that are there, at most `most`, as long as `add` accepts them.
    fn poll(
        &mut self,
        most: usize,
        stop: &impl Fn() -> bool,
        mut add: impl FnMut(St::Item) -> Result<(), BoxError>,
    ) -> Filled {
        let mut context = Context::from_waker(&self.waker);
        for _ in 0..most {
            if stop() {
                break;
            }
            match self.stream.as_mut().poll_next(&mut context) {
                Poll::Ready(Some(item)) => {
                    if let Err(error) = add(item) {
                        return Filled::Failed(error);
                    }
                }
                Poll::Ready(None) => return Filled::End,
                Poll::Pending => return Filled::Pending,
            }
        }
        Filled::More
    }

    fn attach(&mut self, control: &Arc<Control>) -> ReceiverArc<Alarm> {
        self.alarm.attach(control);
        ReceiverArc::clone(&self.alarm)
    }

    fn size(&self) -> Option<u64> {
        self.stream.size_hint().1.map(|items| items as u64)
    }
}

impl<St> Sealed for StreamItems<St> {}

impl<St: Stream> Source for StreamItems<St> {
    type Item = St::Item;
    type Handle = ReceiverArc<Alarm>;
    type Reader = NoReader;

    fn fill(&mut self, batch: &mut Vec<St::Item>, most: usize, stop: &impl Fn() -> bool) -> Filled {
        self.0.poll(most, stop, |item| {
            batch.push(item);
            Ok(())
        })
    }

    fn size(&self) -> Option<u64> {
        self.0.size()
    }

    fn attach(&mut self, control: &Arc<Control>) -> Self::Handle {
        self.0.attach(control)
    }

    fn close(alarm: &Self::Handle) {
        alarm.detach();
    }
}

impl<St> Sealed for TriedStream<St> {}

impl<St, T, E> Source for TriedStream<St>
where
    St: Stream<Item = Result<T, E>>,
    E: Into<BoxError>,
{
    type Item = T;
    type Handle = ReceiverArc<Alarm>;
    type Reader = NoReader;

    fn fill(&mut self, batch: &mut Vec<T>, most: usize, stop: &impl Fn() -> bool) -> Filled {
        self.0.poll(most, stop, |item| {
            batch.push(item.map_err(Into::into)?);
            Ok(())
        })
    }

    fn size(&self) -> Option<u64> {
        self.0.size()
    }

    fn attach(&mut self, control: &Arc<Control>) -> Self::Handle {
        self.0.attach(control)
    }

    fn close(alarm: &Self::Handle) {
        alarm.detach();
    }
}

impl<St> fmt::Debug for StreamItems<St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamItems").finish_non_exhaustive()
    }
}

impl<St> fmt::Debug for TriedStream<St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TriedStream").finish_non_exhaustive()
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").finish_non_exhaustive()
    }
}

impl<St: Stream> Pipeline<StreamItems<St>> {
    /// Makes a pipeline from a `Stream`, with the feature `futures`. The stream may be one of any executor.
    ///
    /// The threads that take items from the source poll it: the workers of the pool, or a thread of its own, as the
    /// [distribution](Self::distribute) says. They never wait for it. When it has no items, it wakes the pipeline.
    ///
    /// As with a [fed](Pipeline::fed) pipeline, a batch consists of the items that are there, up to the
    /// [size of a batch](Self::batch), and no item is taken for which there is no room. So a stream that reads from a connection
    /// is not polled before there is.
    ///
    /// The stream is not polled by a task of its executor. Connections, timers and channels of tokio can be used so. What
    /// needs a runtime while it is polled, as `tokio::spawn` and the files of tokio do, panics: then poll it in a task, and
    /// [send](crate::pipeline::Sender::send_async) what it yields.
    ///
    /// If it takes long to poll the stream, use a distribution other than [`Distribution::Pull`], so that no worker does so. There is
    /// no [`flush_after`](Pipeline::flush_after) for streams: put their items together before, with what their executor has for that.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    /// use smol::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    /// use smol::net::{TcpListener, TcpStream};
    ///
    /// // A server that adds up the numbers in each line that a client sends.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let sums = smol::block_on(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (connection, _) = listener.accept().await?;
    ///     client.write_all(b"1 2 3\n4 5\n").await?;
    ///     client.close().await?;
    ///     let mut sums = Vec::new();
    ///     Pipeline::try_from_stream(BufReader::new(connection).lines())
    ///         .try_map(|line| line.split(' ').map(str::parse::<u32>).sum::<Result<u32, _>>())
    ///         .ordered()
    ///         .run_async(&pool, async |sum| sums.push(sum))
    ///         .await?;
    ///     Ok::<_, Box<dyn std::error::Error>>(sums)
    /// })?;
    /// assert_eq!(sums, [6, 9]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Distribution::Pull`]: crate::pipeline::Distribution::Pull
    pub fn from_stream(stream: St) -> Self {
        Self { source: StreamItems(Polled::new(stream)), steps: Same, config: Config::new() }
    }
}

impl<St, T, E> Pipeline<TriedStream<St>>
where
    St: Stream<Item = Result<T, E>>,
    E: Into<BoxError>,
{
    /// Makes a pipeline from a `Stream` of results, with the feature `futures`. The first error ends the run, as with
    /// [`try_new`](Pipeline::try_new). Everything else is as with [`from_stream`](Pipeline::from_stream).
    ///
    /// ```
    /// use heist::pipeline::{Pipeline, Stage};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let replies = smol::stream::iter([Ok(1), Ok(2), Err("connection reset"), Ok(4)]);
    /// let error = Pipeline::try_from_stream(replies).run(&pool, |_| ()).unwrap_err();
    /// assert_eq!((error.stage(), error.item()), (Some(Stage::Source), Some(2)));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn try_from_stream(stream: St) -> Self {
        Self { source: TriedStream(Polled::new(stream)), steps: Same, config: Config::new() }
    }
}
