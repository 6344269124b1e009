//! The last lines of a terminal, which are redrawn repeatedly and removed in the end.
//!
//! This module never asks the terminal for the position of its cursor: the answer would arrive on stdin, and
//! the question would go to stdout, which may be a pipe. The cursor stays at the first line of the viewport,
//! and all movements are relative to it.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveToColumn, MoveUp, Show};
use crossterm::queue;
use crossterm::style::{self, Attribute, Print, ResetColor, SetAttribute, SetForegroundColor};
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};

/// Clears its lines when it is dropped.
pub(super) struct InlineViewport<W: Write> {
    out: W,
    colour: bool,
    /// What the terminal shows now.
    shown: Buffer,
}

impl<W: Write> InlineViewport<W> {
    pub(super) fn new(out: W, colour: bool) -> Self {
        Self { out, colour, shown: Buffer::empty(Rect::ZERO) }
    }

    /// Draws the lines that have changed.
    pub(super) fn paint(&mut self, next: Buffer) -> io::Result<()> {
        let area = next.area;
        let resized = area != self.shown.area;
        queue!(self.out, BeginSynchronizedUpdate, Hide, MoveToColumn(0))?;
        if resized {
            queue!(self.out, Clear(ClearType::FromCursorDown))?;
        }
        for row in 0..area.height {
            if row > 0 {
                // This also scrolls if the screen ends here.
                queue!(self.out, Print("\r\n"))?;
            }
            if resized || line(&next, row) != line(&self.shown, row) {
                self.write(line(&next, row))?;
            }
        }
        queue!(self.out, MoveToColumn(0))?;
        if area.height > 1 {
            queue!(self.out, MoveUp(area.height - 1))?;
        }
        queue!(self.out, EndSynchronizedUpdate)?;
        self.shown = next;
        self.out.flush()
    }

    fn write(&mut self, cells: &[Cell]) -> io::Result<()> {
        let used = cells.iter().rposition(|cell| cell.symbol() != " ").map_or(0, |last| last + 1);
        let mut style = (Color::Reset, Modifier::empty());
        for cell in &cells[..used] {
            let next = (cell.fg, cell.modifier);
            if self.colour && next != style {
                self.set(next)?;
                style = next;
            }
            queue!(self.out, Print(cell.symbol()))?;
        }
        if style != (Color::Reset, Modifier::empty()) {
            self.set((Color::Reset, Modifier::empty()))?;
        }
        queue!(self.out, Clear(ClearType::UntilNewLine))
    }

    fn set(&mut self, (colour, modifier): (Color, Modifier)) -> io::Result<()> {
        queue!(self.out, ResetColor, SetAttribute(Attribute::Reset))?;
        if let Some(colour) = terminal_colour(colour) {
            queue!(self.out, SetForegroundColor(colour))?;
        }
        for (wanted, attribute) in
            [(Modifier::BOLD, Attribute::Bold), (Modifier::DIM, Attribute::Dim)]
        {
            if modifier.contains(wanted) {
                queue!(self.out, SetAttribute(attribute))?;
            }
        }
        Ok(())
    }
}

/// Converts the colours that the view uses. crossterm calls the standard colours of a terminal dark.
fn terminal_colour(colour: Color) -> Option<style::Color> {
    match colour {
        Color::Red => Some(style::Color::DarkRed),
        Color::Green => Some(style::Color::DarkGreen),
        Color::Yellow => Some(style::Color::DarkYellow),
        Color::Blue => Some(style::Color::DarkBlue),
        Color::Magenta => Some(style::Color::DarkMagenta),
        Color::Cyan => Some(style::Color::DarkCyan),
        _ => None,
    }
}

/// Clears the lines below the cursor and shows the cursor again.
pub(super) fn erase(out: &mut impl Write) -> io::Result<()> {
    queue!(out, MoveToColumn(0), Clear(ClearType::FromCursorDown), Show)?;
    out.flush()
}

impl<W: Write> Drop for InlineViewport<W> {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to clear.
        let _ = erase(&mut self.out);
    }
}

fn line(buffer: &Buffer, row: u16) -> &[Cell] {
    let width = usize::from(buffer.area.width);
    &buffer.content[usize::from(row) * width..][..width]
}

#[cfg(test)]
mod tests {
    use ratatui_core::style::Style;

    use super::*;

    fn painted(colour: bool, frames: &[&[&str]]) -> String {
        let mut out = Vec::new();
        let mut viewport = InlineViewport::new(&mut out, colour);
        for lines in frames {
            let mut buffer = Buffer::with_lines(lines.iter().copied());
            buffer.set_style(buffer.area, Style::new().red().bold());
            viewport.paint(buffer).unwrap();
        }
        drop(viewport);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_lines_that_changed_are_written_again() {
        let out = painted(false, &[&["same", "old"], &["same", "new"]]);
        assert_eq!(out.matches("same").count(), 1);
        assert!(out.contains("old") && out.contains("new"));
    }

    #[test]
    fn drop_clears_the_lines_and_shows_the_cursor() {
        assert!(painted(true, &[&["a"]]).ends_with("\x1b[1G\x1b[J\x1b[?25h"));
    }

    #[test]
    fn the_cursor_returns_to_the_first_line() {
        assert!(painted(false, &[&["a", "b", "c"]]).contains("\x1b[2A"));
        assert!(!painted(false, &[&["a"]]).contains("A"));
    }

    #[test]
    fn without_colour_there_is_no_style() {
        assert!(painted(true, &[&["a"]]).contains("\x1b[1m"));
        let plain = painted(false, &[&["a"]]);
        assert!(!plain.contains('m'), "{plain:?}");
    }
}
