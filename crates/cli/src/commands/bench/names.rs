//! Errors for unknown names of cases and peers, with suggestions.

use heist_bench::{Kind, UnknownName, missing_feature};

use crate::exit::{Exit, Failure};

/// The similarity from which on a name is suggested: 1 is equal, 0 is nothing in common. A guess.
const MIN_SIMILARITY: f64 = 0.7;

/// Returns the failure for an unknown name, with the most similar known name.
pub(crate) fn unknown(error: &UnknownName) -> Failure {
    let UnknownName { kind, asked, known } = error;
    if let (Kind::Peer, Some(feature)) = (kind, missing_feature(asked)) {
        return not_built(asked, feature);
    }
    let what = match kind {
        Kind::Case => format!("cannot find the workload `{asked}`"),
        Kind::Peer => format!("cannot find the peer `{asked}`"),
        Kind::Workers => format!("cannot measure with {asked} workers"),
    };
    let all = match kind {
        Kind::Case => "`heist bench --list` lists all names.".into(),
        _ => format!("Known: {}.", known.join(", ")),
    };
    let advice = match most_similar(asked, known) {
        Some(name) if *kind != Kind::Workers => format!("Did you mean `{name}`? {all}"),
        _ => all,
    };
    Failure { exit: Exit::Usage, what, why: error.to_string(), advice }
}

/// Returns the failure for a peer that this build does not include.
fn not_built(peer: &str, feature: &str) -> Failure {
    Failure {
        exit: Exit::Usage,
        what: format!("cannot measure `{peer}`"),
        why: format!("this heist was built without the feature `{feature}`"),
        advice: format!(
            "Build it with the feature, in a checkout of the sources:\n    \
             cargo run --release --features {feature} -- bench --peers heist,{peer}"
        ),
    }
}

/// Returns the most similar known name, or part of a name, if any is similar enough. Separators alone are
/// similar to nothing.
fn most_similar<'k>(asked: &str, known: &'k [String]) -> Option<&'k str> {
    if !asked.contains(char::is_alphanumeric) {
        return None;
    }
    let parts = known.iter().flat_map(|name| parts(name));
    let similarity = |name: &str| strsim::jaro_winkler(&asked.to_lowercase(), name);
    let scored = parts.map(|name| (similarity(name), name));
    let best = scored.filter(|&(score, _)| score >= MIN_SIMILARITY);
    // Of equally similar names the first wins, which is the shortest: a family rather than one of its cases.
    best.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, name)| name)
}

/// Returns the parts of a name that a user may have meant. For `duel/skewed/2` these are the whole name,
/// `duel` and `duel/skewed`, `skewed/2`, and each component.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    let cuts = name.match_indices('/').map(|(place, _)| place);
    let heads = cuts.clone().map(|place| &name[..place]);
    let tails = cuts.map(|place| &name[place + 1..]);
    heads.chain([name]).chain(tails).chain(name.split('/')).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(kind: Kind, asked: &str, known: &[&str]) -> String {
        let known = known.iter().map(|&name| name.into()).collect();
        let failure = unknown(&UnknownName { kind, asked: asked.into(), known });
        assert_eq!(failure.exit, Exit::Usage);
        failure.advice
    }

    const CASES: &[&str] =
        &["deque/u64/empty", "spawn/inside/1", "duel/skewed/2", "duel/uniform/2", "fib/1"];

    #[test]
    fn the_most_similar_case_is_suggested() {
        for (asked, expected) in [
            ("dule", "`duel`"),
            ("duel/skwed", "`duel/skewed`"),
            ("skweed", "`skewed`"),
            ("spwan/inside/1", "`spawn/inside/1`"),
            ("FIB/1", "`fib/1`"),
        ] {
            let advice = advice(Kind::Case, asked, CASES);
            assert!(advice.starts_with(&format!("Did you mean {expected}?")), "{asked}: {advice}");
        }
    }

    #[test]
    fn dissimilar_names_have_no_suggestion() {
        for asked in ["xyzzy", "/", "//", ""] {
            let advice = advice(Kind::Case, asked, CASES);
            assert_eq!(advice, "`heist bench --list` lists all names.", "{asked}");
        }
    }

    #[cfg(not(feature = "peers"))]
    #[test]
    fn a_missing_peer_names_the_build_command() {
        let advice = advice(Kind::Peer, "tokio", &["heist", "rayon"]);
        let expected = "cargo run --release --features peers -- bench --peers heist,tokio";
        assert!(advice.ends_with(expected), "{advice}");
    }

    #[test]
    fn known_peers_and_workers_are_listed() {
        let known = ["heist", "rayon"];
        let expected = "Did you mean `rayon`? Known: heist, rayon.";
        assert_eq!(advice(Kind::Peer, "ryon", &known), expected);
        assert_eq!(advice(Kind::Workers, "3", &["1", "2"]), "Known: 1, 2.");
    }
}
