//! The contents of a frame: the clock, the current measurement, a row for each worker, and the medians so
//! far.

use std::time::Duration;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Style, Stylize};
use ratatui_core::text::{Line, Span};

use crate::commands::duel::activity::{HISTORY, Sample, State, WorkerActivity};
use crate::commands::duel::progress::{Current, Progress};
use crate::commands::duel::text;
use crate::units;

/// The number of rows besides those of the workers: the clock, the current measurement, counters, medians,
/// and space between them.
const OTHER_ROWS: u16 = 12;

/// The width of the names at the left.
const NAME_WIDTH: usize = 14;

/// The width of the state of a worker: `stealing  12.3 M/s`.
const STATE_WIDTH: usize = 20;

/// The workloads whose medians are shown if the terminal is at least `WIDE` columns wide.
const WORKLOADS: [&str; 3] = ["uniform", "skewed", "recursive"];
const WIDE: usize = 100;

/// Returns the height of a frame in a terminal with this number of rows.
pub(super) fn height(workers: usize, rows: u16) -> u16 {
    let rows_of_workers = u16::try_from(workers).unwrap_or(u16::MAX).saturating_add(1);
    OTHER_ROWS.saturating_add(rows_of_workers).min(rows.saturating_sub(1))
}

/// Draws a frame. `elapsed` is the time since the start.
pub(super) fn frame(progress: &Progress, elapsed: Duration, area: Rect) -> Buffer {
    let width = usize::from(area.width);
    let rows = usize::from(area.height);
    let spacious = rows >= usize::from(OTHER_ROWS) + progress.activity.workers.len().min(4);
    let medians_so_far = medians_so_far(progress, width);
    let gap = |lines: &mut Vec<_>| lines.extend(spacious.then(Line::default));
    let mut lines = vec![clock(progress, elapsed, width)];
    gap(&mut lines);
    lines.push(measurement(progress.current.as_ref(), width));
    let taken = lines.len() + medians_so_far.len() + 1 + 2 * usize::from(spacious);
    lines.extend(workers(progress, width, rows.saturating_sub(taken).max(1)));
    lines.push(counters(progress));
    gap(&mut lines);
    lines.extend(medians_so_far);
    let mut buffer = Buffer::empty(area);
    for (line, row) in lines.iter().zip(area.rows()) {
        buffer.set_line(row.x, row.y, line, row.width);
    }
    buffer
}

/// Returns the row with the progress and the remaining time.
fn clock(progress: &Progress, elapsed: Duration, width: usize) -> Line<'static> {
    let left = progress.end.saturating_sub(elapsed).as_secs_f64().ceil();
    let left = if left > 0.0 { format!("{left:.0} s left") } else { "nearly done".to_owned() };
    let round = progress.current.as_ref().map_or(0, |now| now.round) + 1;
    let head = format!("{:NAME_WIDTH$}", format!("round {round}"));
    let room = width.saturating_sub(head.len() + 13).min(60);
    let fraction = elapsed.as_secs_f64() / progress.end.as_secs_f64();
    let done = text::bar(fraction, room);
    let rest = "·".repeat(room.saturating_sub(done.chars().count()));
    Line::from(vec![head.bold(), done.green(), rest.dim(), format!(" {left}").into()])
}

fn measurement(current: Option<&Current>, width: usize) -> Line<'static> {
    let Some(current) = current else { return Line::from("preparing") };
    let by = text::shown(&current.by).to_owned();
    let room = width.saturating_sub(NAME_WIDTH.max(by.len() + 1));
    let what = text::fit(&current.title, room);
    Line::from(vec![
        Span::styled(format!("{by:NAME_WIDTH$}"), colour(&current.by).bold()),
        what.into(),
    ])
}

/// Returns as many rows of workers as there is room for, and a summary of the rest.
fn workers(progress: &Progress, width: usize, rows: usize) -> Vec<Line<'static>> {
    let activity = &progress.activity;
    let all = &activity.workers;
    let shown = if all.len() <= rows { all.len() } else { rows - 1 };
    let no_counters = progress.current.is_some() && activity.in_pool.is_none();
    let row_of = |(index, worker): (usize, &WorkerActivity)| {
        let state_text = match activity.in_pool {
            None if no_counters => Span::from("no counters").dim(),
            Some(in_pool) if index >= in_pool => Span::from("not in this pool").dim(),
            _ => state_text(worker.now),
        };
        row(index, worker, state_text, width)
    };
    let mut lines: Vec<_> = all.iter().enumerate().take(shown).map(row_of).collect();
    if shown < all.len() {
        lines.push(Line::from(others(&all[shown..]).dim()));
    }
    lines
}

fn row(
    index: usize,
    worker: &WorkerActivity,
    state_text: Span<'static>,
    width: usize,
) -> Line<'static> {
    let room = width.saturating_sub(NAME_WIDTH + STATE_WIDTH + 1).min(HISTORY);
    let mut spans = vec![format!("{:NAME_WIDTH$}", format!("worker {index}")).into()];
    let skipped = worker.history.len().saturating_sub(room);
    spans.push(" ".repeat(room - (worker.history.len() - skipped)).into());
    spans.extend(worker.history.iter().skip(skipped).map(|sample| mark(*sample)));
    spans.push(" ".into());
    spans.push(state_text);
    Line::from(spans)
}

fn state_text(sample: Sample) -> Span<'static> {
    let rate = || text::rate(sample.rate);
    let what = match sample.state {
        State::Unknown => return Span::from(""),
        State::Stealing => format!("stealing  {}/s", rate()),
        State::Running => format!("running   {}/s", rate()),
        State::InTask => "inside one task".to_owned(),
        State::Searching => "searching".to_owned(),
        State::Asleep => "asleep".to_owned(),
    };
    Span::styled(what, shade(sample.state))
}

/// Returns one sample in the history of a worker. The height grows with the number of tasks per second: from
/// a thousand on, three times as many are one step.
fn mark(sample: Sample) -> Span<'static> {
    const STEPS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let step = ((sample.rate.max(1.0).log10() - 3.0) * 2.0).clamp(0.0, 7.0) as usize;
    let mark = match sample.state {
        State::Unknown => " ",
        State::Stealing | State::Running => STEPS[step],
        State::InTask => "▬",
        State::Searching => "?",
        State::Asleep => "·",
    };
    Span::styled(mark, shade(sample.state))
}

fn shade(state: State) -> Style {
    match state {
        State::Stealing => Style::new().magenta(),
        State::Running => Style::new().green(),
        State::InTask => Style::new().blue(),
        State::Searching => Style::new().yellow(),
        State::Unknown | State::Asleep => Style::new().dim(),
    }
}

/// Summarises the workers for which there is no room.
fn others(workers: &[WorkerActivity]) -> String {
    let asleep = workers.iter().filter(|worker| worker.now.state == State::Asleep).count();
    format!("and {} more, {asleep} of them asleep", workers.len())
}

fn counters(progress: &Progress) -> Line<'static> {
    let activity = &progress.activity;
    let steals = units::count(activity.steals);
    let depth = units::count(activity.depth);
    Line::from(format!("{:NAME_WIDTH$}{steals} steals, {depth} tasks in the pool", "").dim())
}

/// Returns the medians so far of every workload with all workers, or of the current case if there is no room
/// for more.
fn medians_so_far(progress: &Progress, width: usize) -> Vec<Line<'static>> {
    let full = |workload: &&str| {
        let case = format!("duel/{workload}/{}", progress.workers);
        let heading = format!("{workload}, {}", units::of(progress.workers as u64, "worker"));
        (case, heading)
    };
    let cases: Vec<_> = match &progress.current {
        _ if width >= WIDE => WORKLOADS.iter().map(full).collect(),
        Some(now) => vec![(now.case.clone(), now.case.replace("duel/", ""))],
        None => Vec::new(),
    };
    let column = (width.saturating_sub(NAME_WIDTH) / cases.len().max(1)).min(60);
    let mut heading = vec![format!("{:NAME_WIDTH$}", "median so far").dim()];
    let titles = cases.iter().map(|(_, title)| text::fit(title, column.saturating_sub(1)));
    heading.extend(titles.map(|title| format!("{title:column$}").dim()));
    let mut lines = vec![Line::from(heading)];
    for (by, shown) in text::NAMES {
        let mut spans = vec![Span::styled(format!("{shown:NAME_WIDTH$}"), colour(by))];
        spans.extend(cases.iter().flat_map(|(case, _)| score(progress, case, by, column)));
        lines.push(Line::from(spans));
    }
    lines
}

/// Returns a bar whose length is relative to the longest time, and the time.
fn score(progress: &Progress, case: &str, by: &str, column: usize) -> [Span<'static>; 2] {
    let medians = text::NAMES.iter().filter_map(|(name, _)| progress.median(case, name));
    let longest = medians.fold(f64::MIN_POSITIVE, f64::max);
    let Some(median) = progress.median(case, by) else {
        return [Span::from(""), format!("{:column$}", "").into()];
    };
    let bar = text::bar(median / longest, column.saturating_sub(11));
    let room = column.saturating_sub(bar.chars().count());
    [Span::styled(bar, colour(by)), format!("{:room$}", format!(" {}", units::time(median))).into()]
}

fn colour(by: &str) -> Style {
    match by {
        text::WORK_STEALING => Style::new().fg(Color::Green),
        text::RAYON => Style::new().fg(Color::Cyan),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use ratatui_core::backend::TestBackend;
    use ratatui_core::terminal::{Frame, Terminal};

    use super::*;
    use crate::commands::duel::activity::tests::{ran, stats};
    use crate::commands::duel::progress::tests::step;

    fn progress(workers: usize) -> Progress {
        Progress::new(workers, Instant::now(), Duration::from_secs(14))
    }

    /// Returns the progress of a run that measures a pool of two workers, of which the second has stolen.
    fn busy() -> Progress {
        let mut progress = progress(2);
        progress.begin(&step("duel/skewed/2", "heist"));
        progress.sample(Some(stats(&[ran(0, 0), ran(0, 0)])));
        progress.sample(Some(stats(&[ran(5_000_000, 0), ran(1, 1234)])));
        progress.score(&step("duel/skewed/2", "heist"), 100.0);
        progress.score(&step("duel/skewed/2", "rayon"), 200.0);
        progress
    }

    fn picture(progress: &Progress, columns: u16, rows: u16) -> String {
        let height = height(progress.activity.workers.len(), rows);
        let mut terminal = Terminal::new(TestBackend::new(columns, height)).unwrap();
        let draw = |frame: &mut Frame<'_>| {
            let buffer = super::frame(progress, Duration::from_secs(4), frame.area());
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
        assert!(found.contains("1,234 steals"), "{found}");
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
    fn rayon_has_no_counters() {
        let mut progress = busy();
        progress.begin(&step("duel/skewed/2", "rayon"));
        progress.sample(None);
        assert_eq!(picture(&progress, 60, 20).matches("no counters").count(), 2);
    }

    #[test]
    fn absent_workers_are_shown_as_such() {
        let mut progress = busy();
        progress.sample(Some(stats(&[ran(9, 9)])));
        assert_eq!(picture(&progress, 60, 20).matches("not in this pool").count(), 1);
    }

    #[test]
    fn many_workers_are_summed_up() {
        let found = picture(&progress(64), 80, 24);
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
