//! Parts of a page. All text from a file must pass through [`text`].

/// Escapes untrusted text for use in an element and in a quoted attribute.
pub(super) fn text(raw: &str) -> String {
    let mut safe = String::with_capacity(raw.len());
    for character in raw.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // HTML allows no other control characters.
            control if control.is_control() && !matches!(control, '\n' | '\t') => {
                safe.push('\u{fffd}')
            }
            plain => safe.push(plain),
        }
    }
    safe
}

/// Returns a replacement for a chart without data: what is missing, and the command that produces it.
pub(super) fn missing(what: &str, command: &str) -> String {
    format!("<p class=\"missing\">{} <code>{}</code></p>\n", text(what), text(command))
}

/// Returns a section of the page.
pub(super) fn section(id: &str, heading: &str, lead: &str, body: &str) -> String {
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{}</h2>\n<p class=\"lead\">{}</p>\n{body}</section>\n",
        text(heading),
        text(lead),
    )
}

/// The numbers of a chart, as a table.
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) head: Vec<String>,
    /// The first cell of each row is its header.
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(caption: impl Into<String>, head: &[&str]) -> Self {
        let head = head.iter().map(|&cell| cell.into()).collect();
        Self { caption: caption.into(), head, rows: Vec::new() }
    }

    /// Returns the table, collapsed under its caption.
    pub(super) fn collapsed(&self) -> String {
        let caption = text(&self.caption);
        format!("<details><summary>Table: {caption}</summary>{}</details>\n", self.open())
    }

    /// Returns the table without its caption, which only screen readers get.
    pub(super) fn open(&self) -> String {
        let caption = text(&self.caption);
        let head: String =
            self.head.iter().map(|cell| format!("<th scope=\"col\">{}</th>", text(cell))).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\">\
             <table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>"
        )
    }
}

fn line(row: &[String]) -> String {
    let Some((name, cells)) = row.split_first() else { return String::new() };
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", text(cell))).collect();
    format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", text(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element_or_attribute() {
        assert_eq!(
            text("<script>alert('a' & \"b\")</script>"),
            "&lt;script&gt;alert(&#39;a&#39; &amp; &quot;b&quot;)&lt;/script&gt;"
        );
        assert_eq!(text("a\0b\tc"), "a\u{fffd}b\tc");
    }

    #[test]
    fn cells_of_a_table_are_text() {
        let mut table = Table::new("<i>", &["<b>"]);
        table.rows.push(vec!["<u>".into(), "<s>".into()]);
        let shown = table.collapsed();
        for tag in ["<i>", "<b>", "<u>", "<s>"] {
            assert!(!shown.contains(tag), "{shown}");
        }
    }
}
