//! Negative twins: with any ordering of the real code weakened, one at a time, and with any classic
//! mistake, some model must fail.

use heist_deque::twin::{ARGUED, SHOWN, weaken};
use heist_testkit::explore::{self, Model, RACE};

use crate::{beam, deques, injector};

/// The test below that a child process runs.
const CHILD: &str = "twins::child";

fn all() -> impl Iterator<Item = &'static Model> {
    let beams = beam::TWINS.iter().flat_map(|(wrong, mended, _)| [wrong, mended]);
    deques::MODELS.iter().chain(injector::MODELS).chain(beams)
}

/// Explores one twin. It is not a test of its own: the child processes run it.
#[test]
#[ignore = "explores one twin for the tests below"]
fn child() {
    let sites: Vec<_> = SHOWN.iter().chain(ARGUED).copied().collect();
    explore::explore_as_child(all(), &sites, weaken);
}

/// Returns what is reported when this site is weakened.
fn message(site: &str) -> &'static str {
    match site {
        "handle_drop" | "handle_last" => "every item is dropped once",
        _ => RACE,
    }
}

/// Returns whether a model can notice a site. This saves exploring the injector's sites in the models of
/// the deques, and vice versa. A pusher that uses the wrong segment overwrites an item; in most models a thief then
/// waits for ever for the cell that was to have it, which shows nothing.
fn concerns(model: &Model, site: &str) -> bool {
    if site.starts_with("tail_") {
        return model.name == "injector_teardown";
    }
    let injectors = ["head_", "next_", "cell_", "segment_", "stash_"];
    let of_injector = injectors.iter().any(|prefix| site.starts_with(prefix));
    model.name.starts_with("injector") == of_injector
}

#[test]
fn every_weakened_ordering_is_noticed() {
    let mut missed = Vec::new();
    for &site in SHOWN {
        let mut models = deques::MODELS.iter().chain(injector::MODELS);
        let message = message(site);
        let notices =
            |model: &&Model| concerns(model, site) && explore::fails(CHILD, model, site, message);
        match models.find(notices) {
            Some(model) => println!("{site:<16} weakened: {} fails: {message}", model.name),
            None => missed.push(site),
        }
    }
    assert!(missed.is_empty(), "no model notices when these are relaxed: {missed:?}");
}

#[test]
fn every_classic_mistake_is_noticed() {
    for (wrong, mended, message) in beam::TWINS {
        explore::must_hold_in_child(CHILD, mended);
        assert!(explore::fails(CHILD, wrong, "", message), "{} is not noticed", wrong.name);
        println!("{} fails: {message}; {} holds", wrong.name, mended.name);
    }
}

#[test]
fn without_a_weakened_site_nothing_fails() {
    for model in deques::MODELS.iter().chain(injector::MODELS) {
        explore::must_begin_in_child(CHILD, model);
    }
}
