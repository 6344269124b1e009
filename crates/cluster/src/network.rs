//! The runtime of a thread that waits for the network.

use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::error::ClusterError;

/// A runtime for one thread. Its end does not wait for a name that is being looked up.
pub(crate) struct Network(Option<Runtime>);

impl Network {
    pub(crate) fn new() -> Result<Self, ClusterError> {
        Ok(Self(Some(Builder::new_current_thread().enable_all().build()?)))
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        let runtime = self.0.as_ref().expect("only the drop takes it");
        // For the tasks of a worker, which need not be sent to other threads.
        LocalSet::new().block_on(runtime, future)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
