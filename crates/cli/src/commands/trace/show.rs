//! The text of `heist trace --summary`.

use super::names::Named;
use super::summary::{Figures, Summary};
use crate::style::Paint;
use crate::{out, units};

/// The columns of a bar.
const BAR: u64 = 10;
/// What a bar is made of: running, searching, asleep.
const PARTS: [char; 3] = ['█', '▒', '░'];
/// The number of names that are shown.
const NAMES: usize = 10;
/// The columns of a name.
const NAME: usize = 60;
/// A worker that was idle for a smaller part of the time, in percent, is called busy.
const BUSY: f64 = 5.0;

/// Returns the tables and the verdicts, or only the verdicts.
pub(super) fn text(summaries: &[Summary], quiet: bool, paint: Paint) -> String {
    if quiet {
        let several = summaries.len() > 1;
        return summaries.iter().map(|summary| line(summary, several)).collect();
    }
    let tables: Vec<_> = summaries.iter().map(|summary| table(summary, paint)).collect();
    tables.join("\n")
}

/// Returns the verdict, with the name of the pool if there are several.
fn line(summary: &Summary, named: bool) -> String {
    let name = if named { format!("{}: ", out::harmless(&summary.name)) } else { String::new() };
    format!("{name}{}\n", verdict(summary))
}

fn table(summary: &Summary, paint: Paint) -> String {
    let mut text = format!("{}\n", paint.bold(out::harmless(&summary.name)));
    if summary.nanoseconds > 0 {
        text += &format!(
            "{} from the first task to the last\n\n",
            units::time(summary.nanoseconds as f64),
        );
        text += &rows(summary, paint);
        text += &names(&summary.names, paint);
    }
    text += &format!("\n{}\n", verdict(summary));
    if summary.lost > 0 {
        text += &format!(
            "The figures begin late, because {} of the threads {} dropped: each thread keeps only its last.\n",
            units::of(summary.lost, "older event"),
            if summary.lost == 1 { "was" } else { "were" },
        );
    }
    text
}

fn rows(summary: &Summary, paint: Paint) -> String {
    let names =
        ["worker", "tasks", "running", "searching", "asleep", "steals", "published", "longest"];
    let mut text = format!("{}\n", paint.dim(cells(&names.map(str::to_owned))));
    for (number, worker) in summary.workers.iter().enumerate() {
        text += &row(&number.to_string(), worker);
        text += &format!("  {}\n", bar(worker, summary.nanoseconds));
    }
    let others = &summary.others;
    let has_others = others.tasks > 0 || others.running > 0;
    if has_others {
        text += &format!("{}\n", row("none", others));
    }
    text += &format!("{}\n", row("all", &summary.total()));
    if has_others {
        text += "none: tasks that went on after a wait, before their threads were workers again\n";
    }
    let [running, searching, asleep] = PARTS;
    text + &format!(
        "{}\n",
        paint.dim(format!("{running} running  {searching} searching  {asleep} asleep"))
    )
}

/// Returns the tasks that ran longest, by their names; nothing if they have none.
fn names(names: &[Named], paint: Paint) -> String {
    if names.is_empty() {
        return String::new();
    }
    let row = |tasks: &str, running: &str, name: &str| format!("{tasks:>8}{running:>10}  {name}\n");
    let mut text = format!("\n{}", paint.dim(row("tasks", "running", "name")));
    for Named { name, tasks, running } in &names[..names.len().min(NAMES)] {
        let name = shortened(&out::harmless(name));
        text += &row(&units::count(*tasks), &units::time(*running as f64), &name);
    }
    if names.len() > NAMES {
        text += &format!("and {}\n", units::of((names.len() - NAMES) as u64, "more name"));
    }
    text
}

/// Returns a name that fits into a line, without its middle if it is too long.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= NAME {
        return name.to_owned();
    }
    let begin: String = name.chars().take(NAME / 2).collect();
    let end: String = name.chars().skip(length - (NAME - NAME / 2 - 1)).collect();
    format!("{begin}…{end}")
}

fn row(name: &str, figures: &Figures) -> String {
    let time = |nanoseconds: u64| units::time(nanoseconds as f64);
    cells(&[
        name.to_owned(),
        units::count(figures.tasks),
        time(figures.running),
        time(figures.searching),
        time(figures.asleep),
        units::count(figures.steals),
        units::count(figures.published),
        time(figures.longest),
    ])
}

fn cells(cells: &[String; 8]) -> String {
    const WIDTHS: [usize; 8] = [6, 10, 8, 10, 8, 8, 10, 8];
    let padded = cells.iter().zip(WIDTHS).map(|(cell, width)| format!("{cell:>width$}"));
    padded.collect()
}

/// Returns how a worker's time was divided. What is missing is the time in which no thread was this worker, or did not know
/// it yet.
fn bar(worker: &Figures, whole: u64) -> String {
    let (mut bar, mut done, mut columns) = (String::new(), 0, 0);
    for (part, time) in PARTS.into_iter().zip([worker.running, worker.searching, worker.asleep]) {
        done += time;
        let end = (u128::from(done) * u128::from(BAR) * 2 / u128::from(whole.max(1))).div_ceil(2);
        let end = end.min(u128::from(BAR)) as u64;
        bar.extend((columns..end).map(|_| part));
        columns = columns.max(end);
    }
    bar
}

/// Returns a sentence about the worker that was idle for the longest time.
fn verdict(summary: &Summary) -> String {
    let percent = |time: u64| 100.0 * time as f64 / summary.nanoseconds as f64;
    let worst = summary.workers.iter().enumerate().max_by_key(|(_, worker)| worker.idle());
    let Some((number, worker)) = worst.filter(|_| summary.nanoseconds > 0) else {
        return "No task was run.".to_owned();
    };
    let idle = percent(worker.idle());
    if idle < BUSY {
        return format!("No worker was idle for more than {:.0} % of the time.", idle.ceil());
    }
    let parts = [
        ("searched for", worker.searching),
        ("slept for", worker.asleep),
        ("had not started for", worker.late),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(_, time)| percent(*time) >= 0.5)
        .map(|(what, time)| format!("{what} {:.0} %", percent(*time)))
        .collect();
    format!("Worker {number} was idle for {idle:.0} % of the time: it {}.", units::list(&parts))
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::uneven;
    use super::*;
    use crate::style;

    #[test]
    fn the_table_has_a_row_for_each_worker() {
        let text = text(&[Summary::new(&uneven())], false, style::plain());
        let expected = "\
heist 1: work stealing, 2 workers
1.00 µs from the first task to the last

worker     tasks running searching  asleep  steals published longest
     0         2 1.00 µs      0 ns    0 ns       0         3 1.00 µs  ██████████
     1         1  300 ns    200 ns  500 ns       1         0  300 ns  ███▒▒░░░░░
   all         3 1.30 µs    200 ns  500 ns       1         3 1.00 µs
█ running  ▒ searching  ░ asleep

Worker 1 was idle for 70 % of the time: it searched for 20 % and slept for 50 %.
";
        assert_eq!(text, expected);
        let table = text.lines().filter(|line| line.starts_with(' '));
        assert!(table.map(|line| line.chars().count()).max() <= Some(80), "{text}");
    }

    #[test]
    fn the_names_that_ran_longest_are_shown() {
        let named =
            |n: u64| Named { name: format!("app::step{n}"), tasks: 10 * n, running: 1000 - n };
        let mut summary = Summary::new(&uneven());
        summary.names = (0..12).map(named).collect();
        summary.names[1].name = format!("app::{}::{{{{closure}}}}", "long".repeat(30));
        let text = text(&[summary], false, style::plain());
        assert!(
            text.contains("\n   tasks   running  name\n       0   1.00 µs  app::step0\n"),
            "{text}"
        );
        assert!(text.contains("  app::longlonglonglonglonglongl…"), "{text}");
        assert!(text.contains("long::{{closure}}\n"), "{text}");
        assert!(text.contains("app::step9\nand 2 more names\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn quiet_prints_only_the_verdict() {
        let summaries = [Summary::new(&uneven()), Summary::default()];
        assert_eq!(text(&summaries[1..], true, style::plain()), "No task was run.\n");
        let text = text(&summaries, true, style::plain());
        assert!(text.starts_with("heist 1: work stealing, 2 workers: Worker 1 was idle"), "{text}");
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn busy_workers_are_not_called_idle() {
        let worker = |running| Figures { running, searching: 100 - running, ..Figures::default() };
        let summary = |workers| Summary { workers, nanoseconds: 100, ..Summary::default() };
        let busy = summary(vec![worker(97), worker(99)]);
        assert_eq!(verdict(&busy), "No worker was idle for more than 3 % of the time.");
        let late = Figures { running: 60, late: 40, ..Figures::default() };
        let idle = summary(vec![worker(90), late]);
        let expected = "Worker 1 was idle for 40 % of the time: it had not started for 40 %.";
        assert_eq!(verdict(&idle), expected);
    }

    #[test]
    fn tasks_without_a_worker_have_a_row() {
        let mut summary = Summary::new(&uneven());
        summary.others.running = 40;
        let text = text(&[summary], false, style::plain());
        assert!(text.contains("\n  none         0 40.0 ns "), "{text}");
        assert!(text.contains("\nnone: tasks that went on after a wait"), "{text}");
    }

    #[test]
    fn what_is_lost_is_said() {
        let summary = Summary { lost: 1200, ..Summary::new(&uneven()) };
        let text = text(&[summary], false, style::plain());
        assert!(text.contains("1,200 older events of the threads were dropped"), "{text}");
    }
}
