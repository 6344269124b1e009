//! What a frame looks like: the clock, what is measured, a lane for each worker, and who leads.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};

use crate::commands::duel::board::{Board, Now};
use crate::commands::duel::lanes::{HISTORY, Lane, Look, State};
use crate::commands::duel::text;
use crate::units;

/// Rows that a frame has besides the lanes: the clock, what is measured, counters, leaders, and space between them.
const OTHERS: u16 = 12;

/// How wide the names at the left are.
const NAME: usize = 14;

/// How wide what a worker is doing is: `stealing  12.3 M/s`.
const DOING: usize = 20;

/// What is shown of the leaders if there is room for all, and the width at which there is.
const WORKLOADS: [&str; 3] = ["uniform", "skewed", "recursive"];
const WIDE: usize = 100;

/// How high a frame is in a terminal of that size.
pub(super) fn height(workers: usize, rows: u16) -> u16 {
    let lanes = u16::try_from(workers).unwrap_or(u16::MAX).saturating_add(1);
    OTHERS.saturating_add(lanes).min(rows.saturating_sub(1))
}

/// A frame, so long after the start.
pub(super) fn frame(board: &Board, elapsed: Duration, area: Rect) -> Buffer {
    let width = usize::from(area.width);
    let rows = usize::from(area.height);
    let spacious = rows >= usize::from(OTHERS) + board.lanes.lanes.len().min(4);
    let leaders = leaders(board, width);
    let gap = |lines: &mut Vec<_>| lines.extend(spacious.then(Line::default));
    let mut lines = vec![clock(board, elapsed, width)];
    gap(&mut lines);
    lines.push(now(board.now.as_ref(), width));
    let taken = lines.len() + leaders.len() + 1 + 2 * usize::from(spacious);
    lines.extend(workers(board, width, rows.saturating_sub(taken).max(1)));
    lines.push(counters(board));
    gap(&mut lines);
    lines.extend(leaders);
    let mut buffer = Buffer::empty(area);
    for (line, row) in lines.iter().zip(area.rows()) {
        buffer.set_line(row.x, row.y, line, row.width);
    }
    buffer
}

/// How far it is, and how long it will take.
fn clock(board: &Board, elapsed: Duration, width: usize) -> Line<'static> {
    let left = board.end.saturating_sub(elapsed).as_secs_f64().ceil();
    let left = if left > 0.0 { format!("{left:.0} s left") } else { "nearly done".to_owned() };
    let round = board.now.as_ref().map_or(0, |now| now.round) + 1;
    let head = format!("{:NAME$}", format!("round {round}"));
    let room = width.saturating_sub(head.len() + 13).min(60);
    let fraction = elapsed.as_secs_f64() / board.end.as_secs_f64();
    let done = text::bar(fraction, room);
    let rest = "·".repeat(room.saturating_sub(done.chars().count()));
    Line::from(vec![head.bold(), done.green(), rest.dim(), format!(" {left}").into()])
}

fn now(now: Option<&Now>, width: usize) -> Line<'static> {
    let Some(now) = now else { return Line::from("getting ready") };
    let by = text::shown(&now.by).to_owned();
    let room = width.saturating_sub(NAME.max(by.len() + 1));
    let what = text::fit(&now.title, room);
    Line::from(vec![Span::styled(format!("{by:NAME$}"), colour(&now.by).bold()), what.into()])
}

/// As many lanes as there is room for, and how the others are.
fn workers(board: &Board, width: usize, rows: usize) -> Vec<Line<'static>> {
    let lanes = &board.lanes;
    let all = &lanes.lanes;
    let shown = if all.len() <= rows { all.len() } else { rows - 1 };
    let silent = board.now.is_some() && lanes.seats.is_none();
    let lane = |(seat, lane): (usize, &Lane)| {
        let doing = match lanes.seats {
            None if silent => Span::from("keeps no counters").dim(),
            Some(seats) if seat >= seats => Span::from("not in this pool").dim(),
            _ => doing(lane.now),
        };
        self::lane(seat, lane, doing, width)
    };
    let mut lines: Vec<_> = all.iter().enumerate().take(shown).map(lane).collect();
    if shown < all.len() {
        lines.push(Line::from(others(&all[shown..]).dim()));
    }
    lines
}

fn lane(seat: usize, lane: &Lane, doing: Span<'static>, width: usize) -> Line<'static> {
    let room = width.saturating_sub(NAME + DOING + 1).min(HISTORY);
    let mut spans = vec![format!("{:NAME$}", format!("worker {seat}")).into()];
    let skipped = lane.history.len().saturating_sub(room);
    spans.push(" ".repeat(room - (lane.history.len() - skipped)).into());
    spans.extend(lane.history.iter().skip(skipped).map(|look| mark(*look)));
    spans.push(" ".into());
    spans.push(doing);
    Line::from(spans)
}

fn doing(look: Look) -> Span<'static> {
    let rate = || text::rate(look.rate);
    let what = match look.state {
        State::Unknown => return Span::from(""),
        State::Stealing => format!("stealing  {}/s", rate()),
        State::Running => format!("running   {}/s", rate()),
        State::Deep => "still in one task".to_owned(),
        State::Searching => "searching".to_owned(),
        State::Asleep => "asleep".to_owned(),
    };
    Span::styled(what, shade(look.state))
}

/// One look in the history of a lane: the more tasks a second, the higher; from a thousand on, three times as many are a step.
fn mark(look: Look) -> Span<'static> {
    const STEPS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let step = ((look.rate.max(1.0).log10() - 3.0) * 2.0).clamp(0.0, 7.0) as usize;
    let mark = match look.state {
        State::Unknown => " ",
        State::Stealing | State::Running => STEPS[step],
        State::Deep => "▬",
        State::Searching => "?",
        State::Asleep => "·",
    };
    Span::styled(mark, shade(look.state))
}

fn shade(state: State) -> Style {
    match state {
        State::Stealing => Style::new().magenta(),
        State::Running => Style::new().green(),
        State::Deep => Style::new().blue(),
        State::Searching => Style::new().yellow(),
        State::Unknown | State::Asleep => Style::new().dim(),
    }
}

/// Those for whom there is no room.
fn others(lanes: &[Lane]) -> String {
    let asleep = lanes.iter().filter(|lane| lane.now.state == State::Asleep).count();
    format!("and {} more, {asleep} of them asleep", lanes.len())
}

fn counters(board: &Board) -> Line<'static> {
    let lanes = &board.lanes;
    let steals = units::count(lanes.steals);
    let depth = units::count(lanes.depth);
    Line::from(format!("{:NAME$}{steals} steals seen, {depth} tasks in the pool", "").dim())
}

/// Medians so far: of every workload with all workers, or of what is measured now if there is no room for more.
fn leaders(board: &Board, width: usize) -> Vec<Line<'static>> {
    let full = |workload: &&str| {
        let case = format!("duel/{workload}/{}", board.workers);
        let heading = format!("{workload}, {}", units::of(board.workers as u64, "worker"));
        (case, heading)
    };
    let cases: Vec<_> = match &board.now {
        _ if width >= WIDE => WORKLOADS.iter().map(full).collect(),
        Some(now) => vec![(now.case.clone(), now.case.replace("duel/", ""))],
        None => Vec::new(),
    };
    let column = (width.saturating_sub(NAME) / cases.len().max(1)).min(60);
    let mut heading = vec![format!("{:NAME$}", "median so far").dim()];
    let titles = cases.iter().map(|(_, title)| text::fit(title, column.saturating_sub(1)));
    heading.extend(titles.map(|title| format!("{title:column$}").dim()));
    let mut lines = vec![Line::from(heading)];
    for (by, shown) in text::NAMES {
        let mut spans = vec![Span::styled(format!("{shown:NAME$}"), colour(by))];
        spans.extend(cases.iter().flat_map(|(case, _)| score(board, case, by, column)));
        lines.push(Line::from(spans));
    }
    lines
}

/// A bar that is as long as the time, beside the longest, with the time itself.
fn score(board: &Board, case: &str, by: &str, column: usize) -> [Span<'static>; 2] {
    let medians = text::NAMES.iter().filter_map(|(name, _)| board.median(case, name));
    let longest = medians.fold(f64::MIN_POSITIVE, f64::max);
    let Some(median) = board.median(case, by) else {
        return [Span::from(""), format!("{:column$}", "").into()];
    };
    let bar = text::bar(median / longest, column.saturating_sub(11));
    let room = column.saturating_sub(bar.chars().count());
    [Span::styled(bar, colour(by)), format!("{:room$}", format!(" {}", units::time(median))).into()]
}

fn colour(by: &str) -> Style {
    match by {
        text::STEALING => Style::new().fg(Color::Green),
        text::RAYON => Style::new().fg(Color::Cyan),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::commands::duel::board::tests::step;
    use crate::commands::duel::lanes::tests::{ran, stats};

    fn board(workers: usize) -> Board {
        Board::new(workers, Instant::now(), Duration::from_secs(14))
    }

    /// A pool of two is measured, and the second worker has stolen.
    fn busy() -> Board {
        let mut board = board(2);
        board.begin(&step("duel/skewed/2", "heist"));
        board.look(Some(stats(&[ran(0, 0), ran(0, 0)])));
        board.look(Some(stats(&[ran(5_000_000, 0), ran(1, 1234)])));
        board.score(&step("duel/skewed/2", "heist"), 100.0);
        board.score(&step("duel/skewed/2", "rayon"), 200.0);
        board
    }

    fn picture(board: &Board, columns: u16, rows: u16) -> String {
        let height = height(board.lanes.lanes.len(), rows);
        let mut terminal = Terminal::new(TestBackend::new(columns, height)).unwrap();
        let draw = |frame: &mut ratatui::Frame<'_>| {
            let buffer = super::frame(board, Duration::from_secs(4), frame.area());
            *frame.buffer_mut() = buffer;
        };
        terminal.draw(draw).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_frame_says_what_is_measured_and_what_each_worker_does() {
        let found = picture(&busy(), 120, 40);
        for part in [
            "round 3",
            "10 s left",
            "work stealing skewed, 2 workers: a title",
            "worker 0",
            "running",
            "stealing",
        ] {
            assert!(found.contains(part), "{part}: {found}");
        }
        assert!(found.contains("1,234 steals seen"), "{found}");
    }

    #[test]
    fn a_wide_frame_has_all_workloads_and_a_narrow_one_has_the_current() {
        let wide = picture(&busy(), 120, 40);
        assert!(wide.contains("uniform, 2 workers") && wide.contains("recursive, 2 workers"));
        let narrow = picture(&busy(), 60, 20);
        assert!(narrow.contains("skewed/2") && !narrow.contains("recursive"), "{narrow}");
        assert!(narrow.contains("100 ns") && narrow.contains("200 ns"), "{narrow}");
    }

    #[test]
    fn rayon_keeps_no_counters() {
        let mut board = busy();
        board.begin(&step("duel/skewed/2", "rayon"));
        board.look(None);
        assert_eq!(picture(&board, 60, 20).matches("keeps no counters").count(), 2);
    }

    #[test]
    fn whoever_has_no_seat_says_so() {
        let mut board = busy();
        board.look(Some(stats(&[ran(9, 9)])));
        assert_eq!(picture(&board, 60, 20).matches("not in this pool").count(), 1);
    }

    #[test]
    fn many_workers_are_summed_up() {
        let found = picture(&board(64), 80, 24);
        assert_eq!(found.lines().count(), 23);
        assert!(found.contains("more, 0 of them asleep"), "{found}");
        assert!(found.contains("global queue"), "{found}");
    }

    #[test]
    fn no_terminal_is_too_small() {
        for (columns, rows) in [(1, 1), (1, 40), (10, 5), (200, 2), (30, 12)] {
            picture(&busy(), columns, rows.max(2));
        }
    }
}
