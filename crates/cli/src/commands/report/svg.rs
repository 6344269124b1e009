//! The frame of a chart, and where things are in it.
//!
//! A chart is as wide as the page lets it be: places across are percentages, and text keeps its size, on a phone as well. Lines
//! that need more than that are drawn in a [`plane`], which is stretched.

use super::html::text;

/// How many units a [`plane`] is wide.
pub(super) const PLANE: u32 = 1000;

/// A picture with a name and a description for those who do not see it.
pub(super) struct Chart {
    /// What the page calls it: `comparison`.
    pub(super) kind: &'static str,
    /// Unique on the page.
    pub(super) id: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) height: u32,
    /// What is drawn. Escaped already.
    pub(super) marks: String,
}

impl Chart {
    /// As wide as there is room.
    pub(super) fn wide(&self) -> String {
        self.framed(&format!("width=\"100%\" height=\"{}\"", self.height))
    }

    /// With units that are the same in both directions.
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

/// A fraction of the way across, as an attribute has it. What is outside is at the edge.
pub(super) fn across(fraction: f64) -> String {
    format!("{}%", decimal(100.0 * fraction.clamp(0.0, 1.0)))
}

/// Two digits after the point, if it takes them. Of no number, zero: a chart must not break over one.
pub(super) fn decimal(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let long = format!("{value:.2}");
    long.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A line of text. `anchor` is where it is held: `start`, `middle` or `end`.
pub(super) fn label(class: &str, x: &str, y: u32, anchor: &str, words: &str) -> String {
    format!(
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>",
        text(words)
    )
}

/// Whom a row is about, at its left. A long name would run into what is at its right: the tables have all of it.
pub(super) fn named(y: u32, words: &str) -> String {
    const MOST: usize = 22;
    let cut = words.char_indices().nth(MOST).map(|(end, _)| format!("{}…", &words[..end]));
    label("name", "0", y, "start", cut.as_deref().unwrap_or(words))
}

/// A part of a chart that is stretched to its width, [`PLANE`] units whatever that is. Heights are as outside.
pub(super) fn plane(y: u32, height: u32, inside: &str) -> String {
    format!(
        "<svg class=\"plane\" y=\"{y}\" width=\"100%\" height=\"{height}\" viewBox=\"0 0 {PLANE} {height}\" \
         preserveAspectRatio=\"none\">{inside}</svg>\n"
    )
}

/// What a pointer over the marks is told.
pub(super) fn told(words: &str, marks: &str) -> String {
    format!("<g data-tip=\"{}\">{marks}</g>\n", text(words))
}

/// Where labels of an axis are held, so that those at its ends stay inside.
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
    fn nothing_is_outside_of_a_chart() {
        let shown = [-1.0, 0.0, 0.1234567, 1.0, 7.0, f64::NAN, f64::INFINITY].map(across);
        assert_eq!(shown, ["0%", "0%", "12.35%", "100%", "100%", "0%", "100%"]);
    }

    #[test]
    fn what_is_no_number_is_zero() {
        let shown = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.0].map(decimal);
        assert_eq!(shown, ["0", "0", "0", "1.5", "-2"]);
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        assert!(named(0, "heist-round-robin").contains(">heist-round-robin<"));
        assert!(named(0, &"é".repeat(30)).contains(&format!(">{}…<", "é".repeat(22))));
    }

    #[test]
    fn a_chart_has_a_name_and_a_description() {
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
