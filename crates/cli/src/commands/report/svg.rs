//! The frame of a chart, and positions in it.
//!
//! A chart fills the width of the page. Horizontal positions are percentages, and text keeps its size even on
//! a phone. Lines that need finer positions are drawn in a [`plane`], which is stretched.

use super::html::text;

/// The width of a [`plane`] in its own units.
pub(super) const PLANE: u32 = 1000;

/// A chart with a title and a description for screen readers.
pub(super) struct Chart {
    /// The kind of chart, for example `comparison`.
    pub(super) kind: &'static str,
    /// The id, which is unique on the page.
    pub(super) id: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) height: u32,
    /// The SVG elements, already escaped.
    pub(super) marks: String,
}

impl Chart {
    /// Returns the chart with the full width of the page.
    pub(super) fn wide(&self) -> String {
        self.framed(&format!("width=\"100%\" height=\"{}\"", self.height))
    }

    /// Returns the chart with a fixed aspect ratio.
    pub(super) fn fixed(&self, width: u32) -> String {
        self.framed(&format!("class=\"fixed\" viewBox=\"0 0 {width} {}\"", self.height))
    }

    fn framed(&self, size: &str) -> String {
        let Self { kind, id, marks, .. } = self;
        format!(
            "<svg data-chart=\"{kind}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" {size}>\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>\n{marks}</svg>\n",
            text(&self.title),
            text(&self.description),
        )
    }
}

/// Returns a horizontal position as an attribute value. Positions outside of the chart are moved to its edge.
pub(super) fn across(fraction: f64) -> String {
    format!("{}%", decimal(100.0 * fraction.clamp(0.0, 1.0)))
}

/// Formats a number with at most two decimals. A value that is not finite becomes zero, because it would
/// break the chart.
pub(super) fn decimal(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let long = format!("{value:.2}");
    long.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns a line of text. `anchor` is the point that `x` refers to: `start`, `middle` or `end`.
pub(super) fn label(class: &str, x: &str, y: u32, anchor: &str, words: &str) -> String {
    format!(
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>",
        text(words)
    )
}

/// Returns the name at the left of a row. A long name is cut, because it would overlap the value at the
/// right; the tables have the full name.
pub(super) fn named(y: u32, words: &str) -> String {
    const MOST: usize = 22;
    let cut = words.char_indices().nth(MOST).map(|(end, _)| format!("{}…", &words[..end]));
    label("name", "0", y, "start", cut.as_deref().unwrap_or(words))
}

/// Returns a part of a chart that is stretched to its width, which is always [`PLANE`] units. Heights are not
/// stretched.
pub(super) fn plane(y: u32, height: u32, inside: &str) -> String {
    format!(
        "<svg class=\"plane\" y=\"{y}\" width=\"100%\" height=\"{height}\" viewBox=\"0 0 {PLANE} {height}\" \
         preserveAspectRatio=\"none\">{inside}</svg>\n"
    )
}

/// Adds a tooltip to marks.
pub(super) fn with_tooltip(words: &str, marks: &str) -> String {
    format!("<g data-tip=\"{}\">{marks}</g>\n", text(words))
}

/// Returns the anchor of an axis label, so that labels at the ends stay inside of the chart.
pub(super) fn anchor(fraction: f64) -> &'static str {
    match fraction {
        left if left < 0.04 => "start",
        right if right > 0.96 => "end",
        _ => "middle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_inside_of_the_chart() {
        let shown = [-1.0, 0.0, 0.1234567, 1.0, 7.0, f64::NAN, f64::INFINITY].map(across);
        assert_eq!(shown, ["0%", "0%", "12.35%", "100%", "100%", "0%", "100%"]);
    }

    #[test]
    fn values_that_are_not_finite_are_zero() {
        let shown = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.0].map(decimal);
        assert_eq!(shown, ["0", "0", "0", "1.5", "-2"]);
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        assert!(named(0, "heist-round-robin").contains(">heist-round-robin<"));
        assert!(named(0, &"é".repeat(30)).contains(&format!(">{}…<", "é".repeat(22))));
    }

    #[test]
    fn a_chart_has_a_title_and_a_description() {
        let chart = Chart {
            kind: "scaling",
            id: "scaling-1".into(),
            title: "<b>".into(),
            description: "a & b".into(),
            height: 10,
            marks: String::new(),
        };
        let shown = chart.wide();
        assert!(shown.contains("aria-labelledby=\"scaling-1-t scaling-1-d\""), "{shown}");
        assert!(shown.contains("<title id=\"scaling-1-t\">&lt;b&gt;</title>"), "{shown}");
        assert!(shown.contains("<desc id=\"scaling-1-d\">a &amp; b</desc>"), "{shown}");
    }
}
