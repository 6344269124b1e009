//! Who has which colour and which sign, all over the page. The style sheet has the colours themselves.

/// How many there are.
const COLOURS: usize = 10;

/// Those whom most pages have: the same on all of them.
const KNOWN: [&str; 4] = ["heist", "rayon", "heist-locked", "heist-global"];

/// Everyone that a page shows.
pub(super) struct Palette<'r> {
    others: Vec<&'r str>,
}

impl<'r> Palette<'r> {
    pub(super) fn new(names: impl IntoIterator<Item = &'r str>) -> Self {
        let mut others = Vec::new();
        for name in names {
            if !KNOWN.contains(&name) && !others.contains(&name) {
                others.push(name);
            }
        }
        Self { others }
    }

    /// The class of someone's marks.
    pub(super) fn class(&self, name: &str) -> String {
        format!("c{}", self.place(name))
    }

    /// A sign around the origin, so that colour is not all that tells lines apart.
    pub(super) fn sign(&self, name: &str) -> &'static str {
        const SIGNS: [&str; 5] = [
            "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
            "M-4-4h8v8h-8z",
            "M0-5.5L5 4H-5z",
            "M0-5.5L5.5 0L0 5.5L-5.5 0z",
            "M0 5.5L5-4H-5z",
        ];
        SIGNS[self.place(name) % SIGNS.len()]
    }

    /// What says who is who, for the names that a chart has.
    pub(super) fn key(&self, name: &str) -> String {
        format!(
            "<svg class=\"key\" aria-hidden=\"true\" width=\"14\" height=\"14\" viewBox=\"-7 -7 14 14\"><path class=\"fill {}\" d=\"{}\"/></svg>",
            self.class(name),
            self.sign(name)
        )
    }

    fn place(&self, name: &str) -> usize {
        if let Some(place) = KNOWN.iter().position(|&known| known == name) {
            return place;
        }
        let place = self.others.iter().position(|&other| other == name).unwrap_or_default();
        KNOWN.len() + place % (COLOURS - KNOWN.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_have_the_same_colour_everywhere_and_no_other_has_it() {
        let names: Vec<String> = (0..20).map(|number| format!("other {number}")).collect();
        let palette = Palette::new(names.iter().map(String::as_str).chain(["rayon", "heist"]));
        assert_eq!((palette.class("heist"), palette.class("rayon")), ("c0".into(), "c1".into()));
        for name in &names {
            let place = palette.place(name);
            assert!((KNOWN.len()..COLOURS).contains(&place), "{name} has {place}");
        }
    }
}
