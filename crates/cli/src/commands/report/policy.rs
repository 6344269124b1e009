//! What the page may do: run its own script, use its own style, and nothing else.

use sha2::{Digest, Sha256};

/// A content security policy that knows the one style and the one script by what is in them.
pub(super) fn policy(style: &str, script: &str) -> String {
    format!(
        "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        base64(&Sha256::digest(style)),
        base64(&Sha256::digest(script)),
    )
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let bits = three
            .iter()
            .enumerate()
            .fold(0_u32, |bits, (place, &byte)| bits | u32::from(byte) << (16 - 8 * place));
        for place in 0..4 {
            if place <= three.len() {
                out.push(char::from(DIGITS[(bits >> (18 - 6 * place) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let shown = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(shown, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }

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
