//! The resources that the process has used so far.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::look;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::look;

use std::ops::Sub;
use std::time::Duration;

/// The usage of all threads, including those that have ended.
#[derive(Debug, Default, Clone, Copy)]
pub struct Usage {
    /// Processor time, user and system.
    pub cpu: Duration,
    /// Context switches, voluntary and involuntary.
    pub switches: u64,
}

/// Returns what was used since an earlier look.
impl Sub for Usage {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            switches: self.switches.saturating_sub(earlier.switches),
        }
    }
}

/// Whether the numbers are known on this system.
pub const KNOWN: bool = cfg!(target_os = "linux");

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
