//! The content security policy of the page: it may run its own script, use its own style, and load nothing
//! else.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha2::{Digest, Sha256};

/// Returns a policy that identifies the only style and the only script by their hashes.
pub(super) fn policy(style: &str, script: &str) -> String {
    format!(
        "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        BASE64_STANDARD.encode(Sha256::digest(style)),
        BASE64_STANDARD.encode(Sha256::digest(script)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_script_may_run() {
        let policy = policy("", "");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(
            policy.contains("script-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"),
            "{policy}"
        );
    }
}
