//! Negative twins: each ordering of the real code weakened, one at a time, and each classic mistake,
//! must be noticed by a model.
//!
//! A model that fails may bring down its process (destructors run outside of loom's world), so each
//! twin is explored in a process of its own: this test binary, called again.

use std::process::{Command, Stdio};

use heist_deque::twin::{ARGUED, SHOWN, weaken};

use crate::explore::Model;
use crate::{beam, deques, injector};

/// Names the model that a child process is to explore.
const MODEL: &str = "HEIST_TWIN_MODEL";
/// Names the ordering that it is to weaken; empty for none.
const SITE: &str = "HEIST_TWIN_SITE";

fn all() -> impl Iterator<Item = &'static Model> {
    let beams = beam::TWINS.iter().flat_map(|(wrong, mended)| [wrong, mended]);
    deques::MODELS.iter().chain(injector::MODELS).chain(beams)
}

/// Not a test of its own: what a child process runs.
#[test]
#[ignore = "explores one twin for the tests below"]
fn child() {
    let name = std::env::var(MODEL).expect("only called by the other tests");
    let site = std::env::var(SITE).unwrap_or_default();
    weaken(SHOWN.iter().chain(ARGUED).copied().find(|&known| known == site).unwrap_or(""));
    all().find(|model| model.name == name).expect("a known model").explore();
}

/// Does an execution of this model fail with this site weakened?
fn fails(model: &Model, site: &str) -> bool {
    let this = std::env::current_exe().expect("the path of this test");
    let child = Command::new(this)
        .args(["--exact", "twins::child", "--ignored"])
        .env(MODEL, model.name)
        .env(SITE, site)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    !child.expect("a process for the twin").success()
}

/// Saves the time to explore what cannot fail: the injector's sites in the deques' models, and the
/// other way round.
fn concerns(model: &Model, site: &str) -> bool {
    let injectors = ["tail_", "head_", "next_", "cell_", "segment_", "stash_"];
    let of_injector = injectors.iter().any(|prefix| site.starts_with(prefix));
    model.name.starts_with("injector") == of_injector
}

#[test]
fn every_weakened_ordering_is_noticed() {
    let mut missed = Vec::new();
    for &site in SHOWN {
        let mut models = deques::MODELS.iter().chain(injector::MODELS);
        match models.find(|model| concerns(model, site) && fails(model, site)) {
            Some(model) => println!("{site:<16} weakened: {} fails", model.name),
            None => missed.push(site),
        }
    }
    assert!(missed.is_empty(), "no model notices when these are relaxed: {missed:?}");
}

#[test]
fn every_classic_mistake_is_noticed() {
    for (wrong, mended) in beam::TWINS {
        assert!(!fails(mended, ""), "{} fails, so its twin shows nothing", mended.name);
        assert!(fails(wrong, ""), "{} is not noticed", wrong.name);
        println!("{} fails, {} holds", wrong.name, mended.name);
    }
}

#[test]
fn without_a_weakened_site_nothing_fails() {
    for model in deques::MODELS.iter().chain(injector::MODELS) {
        assert!(!fails(model, ""), "{} fails by itself", model.name);
    }
}
