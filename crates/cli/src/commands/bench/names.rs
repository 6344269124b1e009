//! What to say to a name that nobody has.

use heist_bench::{Kind, UnknownName, missing_feature};

use crate::exit::{Exit, Failure};

/// Names that are this near to what was asked for are offered: 1 is the same, 0 is nothing in common. A guess.
const NEAR: f64 = 0.7;

/// A name that nobody has, with the nearest that somebody has.
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
        Kind::Case => "`heist bench --list` shows all names.".into(),
        _ => format!("There are: {}.", known.join(", ")),
    };
    let advice = match nearest(asked, known) {
        Some(name) if *kind != Kind::Workers => format!("Did you mean `{name}`? {all}"),
        _ => all,
    };
    Failure { exit: Exit::Usage, what, why: error.to_string(), advice }
}

/// A peer that another build would have.
fn not_built(peer: &str, feature: &str) -> Failure {
    Failure {
        exit: Exit::Usage,
        what: format!("cannot measure `{peer}`"),
        why: format!("this heist was built without the feature `{feature}`"),
        advice: format!(
            "Build one that has it, in a checkout of the sources:\n    \
             cargo run --release --features {feature} -- bench --peers heist,{peer}"
        ),
    }
}

/// The known name that is most like it, as a whole or by its beginning, if any is. A slash alone is like all and none.
fn nearest<'k>(asked: &str, known: &'k [String]) -> Option<&'k str> {
    if !asked.contains(char::is_alphanumeric) {
        return None;
    }
    let beginnings = known.iter().flat_map(|name| beginnings(name));
    let likeness = |name: &str| strsim::jaro_winkler(&asked.to_lowercase(), name);
    let scored = beginnings.map(|name| (likeness(name), name));
    let best = scored.filter(|&(score, _)| score >= NEAR);
    // Of two that are as near, the first and shortest: a family rather than one of its cases.
    best.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, name)| name)
}

/// `duel/skewed/2` by itself, and `duel` and `duel/skewed` before it; also `skewed/2` and what is between slashes.
fn beginnings(name: &str) -> impl Iterator<Item = &str> {
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
    fn the_nearest_case_is_offered() {
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
    fn what_is_like_nothing_is_not_guessed_at() {
        for asked in ["xyzzy", "/", "//", ""] {
            let advice = advice(Kind::Case, asked, CASES);
            assert_eq!(advice, "`heist bench --list` shows all names.", "{asked}");
        }
    }

    #[cfg(not(feature = "peers"))]
    #[test]
    fn a_peer_that_was_not_built_is_told_the_command() {
        let advice = advice(Kind::Peer, "tokio", &["heist", "rayon"]);
        let expected = "cargo run --release --features peers -- bench --peers heist,tokio";
        assert!(advice.ends_with(expected), "{advice}");
    }

    #[test]
    fn peers_and_workers_are_named() {
        let known = ["heist", "rayon"];
        let expected = "Did you mean `rayon`? There are: heist, rayon.";
        assert_eq!(advice(Kind::Peer, "ryon", &known), expected);
        assert_eq!(advice(Kind::Workers, "3", &["1", "2"]), "There are: 1, 2.");
    }
}
