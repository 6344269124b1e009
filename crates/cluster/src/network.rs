//! The runtime of a thread that waits for the network.

use std::panic::resume_unwind;

use tokio::runtime::{Builder, Runtime};

use crate::error::ClusterError;

/// A runtime for one thread. Its end does not wait for a name that is being looked up.
pub(crate) struct Network(Option<Runtime>);

impl Network {
    pub(crate) fn new() -> Result<Self, ClusterError> {
        Ok(Self(Some(Builder::new_current_thread().enable_all().build()?)))
    }

    /// Waits for something short.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime().block_on(future)
    }

    /// Runs a loop to its end, as a task: when the client of the server has something for it, it is woken without a system call.
    pub(crate) fn run<F>(&self, future: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let runtime = self.runtime();
        let ended = runtime.block_on(runtime.spawn(future));
        ended.unwrap_or_else(|error| resume_unwind(error.into_panic()))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("only the drop takes it")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
