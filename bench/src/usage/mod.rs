//! What the process has used of the machine so far.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::look;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::look;

use std::ops::Sub;
use std::time::Duration;

/// Of all threads, those that have ended included.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Usage {
    /// User and system.
    pub(crate) cpu: Duration,
    /// Voluntary or not.
    pub(crate) switches: u64,
}

/// What was used since an earlier look.
impl Sub for Usage {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            switches: self.switches.saturating_sub(earlier.switches),
        }
    }
}

/// Do the numbers mean anything on this system?
pub(crate) const KNOWN: bool = cfg!(target_os = "linux");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_is_a_context_switch() {
        let before = look();
        std::thread::sleep(Duration::from_millis(1));
        assert!(!KNOWN || (look() - before).switches > 0);
    }
}
