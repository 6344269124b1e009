//! The deprecated `Configuration` and `initialize` of rayon-core.
#![allow(deprecated, reason = "the whole module is deprecated")]

use std::any::Any;
use std::error::Error;
use std::fmt;

use crate::builder::ThreadPoolBuilder;
use crate::pool::ThreadPool;

/// The deprecated name of [`ThreadPoolBuilder`], which documents the methods.
///
/// ```
/// #![allow(deprecated)]
/// let pool = rayon_core::Configuration::new().num_threads(2).build()?;
/// assert_eq!(pool.current_num_threads(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[deprecated(note = "Use `ThreadPoolBuilder`")]
#[derive(Default)]
pub struct Configuration {
    builder: ThreadPoolBuilder,
}

impl Configuration {
    /// See [`ThreadPoolBuilder::new`].
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// assert!(rayon_core::Configuration::new().build()?.current_num_threads() > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new() -> Configuration {
        Self::default()
    }

    /// See [`ThreadPoolBuilder::build`].
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// assert_eq!(rayon_core::Configuration::new().num_threads(1).build()?.install(|| 7), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<ThreadPool, Box<dyn Error + 'static>> {
        self.builder.build().map_err(Box::from)
    }

    /// See [`ThreadPoolBuilder::thread_name`].
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// let pool = rayon_core::Configuration::new().num_threads(1).thread_name(|_| "solo".to_owned()).build()?;
    /// assert!(pool.install(|| std::thread::current().name() == Some("solo")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn thread_name<F>(self, closure: F) -> Self
    where
        F: FnMut(usize) -> String + 'static,
    {
        Self { builder: self.builder.thread_name(closure) }
    }

    /// See [`ThreadPoolBuilder::num_threads`].
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// assert_eq!(rayon_core::Configuration::new().num_threads(3).build()?.current_num_threads(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn num_threads(self, num_threads: usize) -> Configuration {
        Self { builder: self.builder.num_threads(num_threads) }
    }

    /// See [`ThreadPoolBuilder::panic_handler`].
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// let pool = rayon_core::Configuration::new().num_threads(1).panic_handler(|_| ()).build()?;
    /// pool.spawn(|| panic!("the handler ignores this"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn panic_handler<H>(self, panic_handler: H) -> Configuration
    where
        H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    {
        Self { builder: self.builder.panic_handler(panic_handler) }
    }

    /// See [`ThreadPoolBuilder::stack_size`].
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// let roomy = rayon_core::Configuration::new().num_threads(1).stack_size(4 << 20).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stack_size(self, stack_size: usize) -> Self {
        Self { builder: self.builder.stack_size(stack_size) }
    }

    /// See [`ThreadPoolBuilder::breadth_first`].
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// let pool = rayon_core::Configuration::new().num_threads(1).breadth_first().build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn breadth_first(self) -> Self {
        Self { builder: self.builder.breadth_first() }
    }

    /// See [`ThreadPoolBuilder::start_handler`].
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// let pool = rayon_core::Configuration::new().num_threads(1).start_handler(|index| assert_eq!(index, 0)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start_handler<H>(self, start_handler: H) -> Configuration
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        Self { builder: self.builder.start_handler(start_handler) }
    }

    /// See [`ThreadPoolBuilder::exit_handler`].
    ///
    /// ```
    /// # #![allow(deprecated)]
    /// let pool = rayon_core::Configuration::new().num_threads(1).exit_handler(|index| assert_eq!(index, 0)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn exit_handler<H>(self, exit_handler: H) -> Configuration
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        Self { builder: self.builder.exit_handler(exit_handler) }
    }

    pub(crate) fn into_builder(self) -> ThreadPoolBuilder {
        self.builder
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.builder.fmt(f)
    }
}

/// The deprecated name of [`ThreadPoolBuilder::build_global`].
///
/// ```
/// # #![allow(deprecated)]
/// rayon_core::initialize(rayon_core::Configuration::new().num_threads(2))?;
/// assert_eq!(rayon_core::current_num_threads(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns an error in the same cases.
#[deprecated(note = "use `ThreadPoolBuilder::build_global`")]
pub fn initialize(config: Configuration) -> Result<(), Box<dyn Error>> {
    config.into_builder().build_global().map_err(Box::from)
}
