//! Knows which rayon-core this program was built with.

const LOCK: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock"));

/// Returns its version and its origin, which the lock file stated when this program was built.
pub(crate) fn rayon_core() -> String {
    described(LOCK).unwrap_or_else(|| "unknown".into())
}

fn described(lock: &str) -> Option<String> {
    let package =
        lock.split("[[package]]").find(|text| text.contains("name = \"rayon-core\""))?.trim();
    let value = |key| {
        let line = package.lines().find_map(|line| line.strip_prefix(key))?;
        line.strip_prefix(" = ").map(|value| value.trim_matches('"'))
    };
    let version = value("version")?;
    // A package from a path has no `source` line.
    let from = value("source").map_or("a path", |_| "the registry");
    Some(format!("{version} from {from}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_no_source() {
        let lock = "version = 4\n\n[[package]]\nname = \"other\"\nversion = \"1.0.0\"\nsource = \"x\"\n\n\
                    [[package]]\nname = \"rayon-core\"\nversion = \"1.13.0\"\n";
        assert_eq!(described(lock).unwrap(), "1.13.0 from a path");
        let registry = format!("{lock}source = \"registry+x\"\n");
        assert_eq!(described(&registry).unwrap(), "1.13.0 from the registry");
        assert_eq!(described(""), None);
    }

    #[test]
    fn this_program_knows_its_rayon_core() {
        assert!(rayon_core().contains(" from "));
    }
}
