//! The colour and the marker of each peer on the whole page. The style sheet defines the colours.

/// The number of colours.
const COLOURS: usize = 10;

/// The peers of most pages. They have the same colours on all of them.
const KNOWN: [&str; 4] = ["heist", "rayon", "heist-locked", "heist-global"];

/// The peers of a page.
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

    /// Returns the CSS class of a peer's marks.
    pub(super) fn class(&self, name: &str) -> String {
        format!("c{}", self.index(name))
    }

    /// Returns the path of a marker around the origin, so that lines do not differ in colour alone.
    pub(super) fn marker(&self, name: &str) -> &'static str {
        const MARKERS: [&str; 5] = [
            "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
            "M-4-4h8v8h-8z",
            "M0-5.5L5 4H-5z",
            "M0-5.5L5.5 0L0 5.5L-5.5 0z",
            "M0 5.5L5-4H-5z",
        ];
        MARKERS[self.index(name) % MARKERS.len()]
    }

    /// Returns the marker of a peer for the legend of a chart.
    pub(super) fn key(&self, name: &str) -> String {
        format!(
            "<svg class=\"key\" aria-hidden=\"true\" width=\"14\" height=\"14\" viewBox=\"-7 -7 14 14\"><path class=\"fill {}\" d=\"{}\"/></svg>",
            self.class(name),
            self.marker(name)
        )
    }

    fn index(&self, name: &str) -> usize {
        if let Some(index) = KNOWN.iter().position(|&known| known == name) {
            return index;
        }
        let index = self.others.iter().position(|&other| other == name).unwrap_or_default();
        KNOWN.len() + index % (COLOURS - KNOWN.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_peers_have_reserved_colours() {
        let names: Vec<String> = (0..20).map(|number| format!("other {number}")).collect();
        let palette = Palette::new(names.iter().map(String::as_str).chain(["rayon", "heist"]));
        assert_eq!((palette.class("heist"), palette.class("rayon")), ("c0".into(), "c1".into()));
        for name in &names {
            let index = palette.index(name);
            assert!((KNOWN.len()..COLOURS).contains(&index), "{name} has {index}");
        }
    }
}
