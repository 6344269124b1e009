//! `heist cluster status`: shows runs and workers, in a terminal again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use heist_cluster::{ClusterReport, JobStatus, NodeReport};

use crate::args::Status as Asked;
use crate::{Failure, harmless};

/// How often a terminal is refreshed. An answer takes a third of a second.
const REFRESH: Duration = Duration::from_millis(700);

pub(crate) fn run(asked: &Asked) -> Result<ExitCode, Failure> {
    let mut observer = crate::observer()?;
    let dumb = env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
    let once = asked.once || asked.json || dumb || !io::stdout().is_terminal();
    if once {
        let status = observer.status()?;
        let text = if asked.json {
            serde_json::to_string_pretty(&status)? + "\n"
        } else {
            show(&status, &BTreeMap::new())
        };
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut earlier = BTreeMap::new();
    loop {
        let text = match observer.status() {
            Ok(status) => {
                let text = show(&status, &earlier);
                let runs = status.jobs.into_iter().map(|job| (job.run, job.report));
                earlier = runs.collect();
                text
            }
            // The server may come back.
            Err(error) => format!("{error}\n"),
        };
        // From the first column of the first line; each line is cleared to its end, and so is the screen.
        print(&format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n")))?;
        thread::sleep(REFRESH);
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Describes the cluster. Rates are those since the earlier reports of the same runs.
fn show(status: &heist_cluster::Status, earlier: &BTreeMap<String, ClusterReport>) -> String {
    let mut text = String::new();
    for job in &status.jobs {
        show_job(&mut text, job, earlier.get(&job.run));
    }
    if !status.waiting.is_empty() {
        let rows = status.waiting.iter().map(|worker| {
            [harmless(&worker.node), harmless(&worker.job), worker.threads.to_string()]
        });
        let _ = writeln!(text, "waiting for a coordinator");
        text += &table(["node", "job", "threads"], rows);
    }
    if text.is_empty() {
        text.push_str("no run, and no worker that waits for one\n");
        text.push_str("`heist cluster worker -- ./program` starts a worker of a program that calls `run_on`.\n");
    }
    text
}

fn show_job(text: &mut String, job: &JobStatus, earlier: Option<&ClusterReport>) {
    let report = &job.report;
    let took = report.elapsed.saturating_sub(earlier.map_or(Duration::ZERO, |it| it.elapsed));
    let rate = |now: u64, before: u64| per_second(now.saturating_sub(before), took);
    let (name, node) = (harmless(&job.job), harmless(&job.coordinator));
    let _ = writeln!(text, "{name}, for {}, coordinator {node}", time(report.elapsed));
    let _ = write!(text, "  {} batches, ", report.batches);
    let _ = write!(text, "{} a second, ", rate(report.batches, earlier.map_or(0, |it| it.batches)));
    let _ = write!(text, "{} outstanding", job.outstanding);
    if job.outstanding > 0 {
        let _ = write!(text, ", the oldest for {}", time(job.oldest));
    }
    let _ = writeln!(
        text,
        "\n  {} redelivered, {} resent, {} copies, {} duplicates, {} given back, {} reconnects",
        report.redelivered,
        report.resent,
        report.copies,
        report.duplicates,
        report.given_back,
        report.reconnects
    );
    let computed = report.nodes.keys();
    let names: BTreeSet<_> =
        computed.chain(job.workers.iter().map(|worker| &worker.node)).collect();
    let none = NodeReport::default();
    let rows = names.into_iter().map(|name| {
        let worker = job.workers.iter().find(|worker| worker.node == *name);
        let now = report.nodes.get(name).unwrap_or(&none);
        let before = earlier.and_then(|earlier| earlier.nodes.get(name)).unwrap_or(&none);
        let busy = now.busy.saturating_sub(before.busy).as_secs_f64();
        let of_worker = |value: &dyn Fn(&heist_cluster::WorkerStatus) -> String| {
            worker.map_or("-".to_owned(), value)
        };
        [
            harmless(name),
            of_worker(&|worker| worker.threads.to_string()),
            of_worker(&|worker| worker.held.to_string()),
            now.batches.to_string(),
            rate(now.batches, before.batches),
            of_worker(&|worker| {
                let whole = took.as_secs_f64() * worker.threads.max(1) as f64;
                format!("{:.0} %", (100.0 * busy / whole.max(1e-3)).min(100.0))
            }),
            worker.map_or("gone".to_owned(), |worker| format!("{} ago", time(worker.silent))),
        ]
    });
    *text += &table(["node", "threads", "has", "batches", "a second", "busy", "heard"], rows);
    for slow in &job.stragglers {
        let nodes: Vec<_> = slow.nodes.iter().map(|node| harmless(node)).collect();
        let started = if nodes.is_empty() { "not started".to_owned() } else { nodes.join(", ") };
        let _ = writeln!(text, "  slow: batch {} for {} ({started})", slow.batch, time(slow.age));
    }
    text.push('\n');
}

/// Returns columns: the first one is text, and the others are aligned at their right ends.
fn table<const N: usize>(heading: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<_> = [heading.map(str::to_owned)].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for row in &rows {
        let _ = write!(text, "  {:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
    text
}

fn per_second(count: u64, took: Duration) -> String {
    let rate = count as f64 / took.as_secs_f64().max(1e-3);
    if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 9.95 => format!("{seconds:.1} s"),
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7_200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_digits() {
        let shown = [0.04, 9.0, 12.3, 119.0, 600.0, 9_000.0]
            .map(|seconds| time(Duration::from_secs_f64(seconds)));
        assert_eq!(shown, ["0.0 s", "9.0 s", "12 s", "119 s", "10 min", "2.5 h"]);
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["left", "7"], ["é", "1200"]].map(|row| row.map(str::to_owned));
        let text = table(["node", "batches"], rows.into_iter());
        assert_eq!(text, "  node  batches\n  left        7\n  é        1200\n");
    }

    #[test]
    fn an_empty_cluster_says_what_to_do() {
        let text = show(&heist_cluster::Status::default(), &BTreeMap::new());
        assert!(text.contains("heist cluster worker"), "{text}");
    }
}
