//! Negative twins: with any ordering of the real code weakened, one at a time, and with any classic
//! mistake, some model must fail.

use heist_deque::twin::{ARGUED, SHOWN, weaken};
use heist_testkit::explore::{self, Model};

use crate::{beam, deques, injector};

/// The test below that a child process runs.
const CHILD: &str = "twins::child";

fn all() -> impl Iterator<Item = &'static Model> {
    let beams = beam::TWINS.iter().flat_map(|(wrong, mended)| [wrong, mended]);
    deques::MODELS.iter().chain(injector::MODELS).chain(beams)
}

/// Explores one twin. It is not a test of its own: the child processes run it.
#[test]
#[ignore = "explores one twin for the tests below"]
fn child() {
    let sites: Vec<_> = SHOWN.iter().chain(ARGUED).copied().collect();
    explore::explore_as_child(all(), &sites, weaken);
}

fn fails(model: &Model, site: &str) -> bool {
    explore::fails(CHILD, model, site)
}

/// Returns whether a model can notice a site. This saves exploring the injector's sites in the models of
/// the deques, and vice versa.
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
