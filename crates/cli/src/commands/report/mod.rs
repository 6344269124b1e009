//! `heist report`: makes an HTML page from a file of samples.
//!
//! The page is one file that needs no other file and no network. The charts are SVG and are drawn here, so
//! that the page can be printed and works without its script. The script adds interaction: zooming, choosing
//! a run, copying the command.

mod comparison;
mod environment;
mod headline;
mod histogram;
mod html;
mod inside;
mod latency;
mod palette;
mod policy;
mod scaling;
mod simulated;
mod svg;

use heist_bench::record::Record;

use crate::args::{Common, Report};
use crate::commands::sim::record::SimRecord;
use crate::exit::{Exit, Failure, Outcome};
use crate::{file, out, units};
use html::text;
use palette::Palette;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

pub(crate) fn run(asked: &Report, common: &Common) -> Outcome {
    if file::is_same(&asked.file, &asked.output) {
        return Err(Failure {
            exit: Exit::Usage,
            what: format!("cannot write the page to {}", asked.output.display()),
            why: "this is the file with the samples, which would be lost".into(),
            advice: "Choose another name, for example -o report.html.".into(),
        });
    }
    file::write(&asked.output, read_and_draw(asked)?.as_bytes())?;
    if file::is_stdout(&asked.output) {
        return Ok(Exit::Done);
    }
    let place = asked.output.display();
    out::print(&if common.quiet {
        format!("{place}\n")
    } else {
        format!("{place}: open it in a browser; no network needed\n")
    })?;
    Ok(Exit::Done)
}

/// Returns the page for a file of samples or of a simulation.
fn read_and_draw(asked: &Report) -> Result<String, Failure> {
    let bytes = file::read(&asked.file)?;
    if SimRecord::is_in(&bytes) {
        return Ok(simulated::page(&simulated::read(&asked.file, &bytes)?));
    }
    let record = file::parse_record(&asked.file, &bytes)?;
    if record.samples.is_empty() && record.latencies.is_empty() && record.traces.is_empty() {
        return Err(Failure {
            exit: Exit::File,
            what: format!("cannot make a page from {}", asked.file.display()),
            why: "it has no samples, no latencies and no traces".into(),
            advice: "Measure something first: heist bench --json FILE".into(),
        });
    }
    Ok(page(&record))
}

/// Returns the page that shows a record.
pub(crate) fn page(record: &Record) -> String {
    let names = record.samples.iter().map(|series| &*series.by);
    let palette =
        Palette::new(names.chain(record.latencies.iter().map(|latencies| &*latencies.by)));
    let sections = [
        comparison::comparison(record, &palette),
        scaling::scaling(record, &palette),
        latency::latency(record, &palette),
        inside::inside(record),
        environment::environment(record),
    ];
    let footer = "Every result was verified during the measurement.";
    document("heist benchmark report", &header(record), &sections.concat(), footer)
}

/// Returns a whole page. All but the title and the footer is already escaped.
fn document(title: &str, header: &str, sections: &str, footer: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n{}<body>\n<a class=\"skip\" href=\"#main\">Skip to the figures</a>\n{header}<main id=\"main\">\n{sections}</main>\n\
         <footer><p>heist {}. {}</p></footer>\n<div id=\"tip\" aria-hidden=\"true\"></div>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n",
        head(title),
        env!("CARGO_PKG_VERSION"),
        text(footer),
    )
}

fn head(title: &str) -> String {
    format!(
        "<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<link rel=\"icon\" href=\"data:image/svg+xml,{ICON}\">\n<style>{STYLE}</style>\n</head>\n",
        policy::policy(STYLE, SCRIPT),
        text(title),
    )
}

/// Three bars, one of which takes from another.
const ICON: &str = "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cg fill='none' stroke-width='3'%3E\
                    %3Cpath stroke='%230067b1' d='M1 3h14M1 13h9'/%3E%3Cpath stroke='%23c4500a' d='M1 8h6M12 3v10'/%3E%3C/g%3E%3C/svg%3E";

const LOGO: &str = "<svg aria-hidden=\"true\" width=\"26\" height=\"22\" viewBox=\"0 0 26 22\"><path class=\"line c0\" d=\"M1 3h24M1 19h16\"/>\
                    <path class=\"line c1\" d=\"M1 11h9M21 4v14\"/></svg>";

fn header(record: &Record) -> String {
    let links = [
        ("comparison", "Comparison"),
        ("scaling", "Scaling"),
        ("latency", "Latency"),
        ("inside", "Inside one run"),
        ("environment", "Environment"),
        ("again", "Reproduce"),
    ];
    let machine = &record.machine;
    let place = [
        if machine.cpu.is_empty() { String::new() } else { machine.cpu.clone() },
        if machine.cores == 0 { String::new() } else { units::of(machine.cores as u64, "core") },
        units::of(record.rounds as u64, "round"),
    ];
    let place: Vec<String> = place.into_iter().filter(|part| !part.is_empty()).collect();
    top("report", &place.join(" · "), &headline::headline(record), &links)
}

/// Returns the top of a page. The headline is already escaped.
fn top(kind: &str, place: &str, headline: &str, links: &[(&str, &str)]) -> String {
    let links: String =
        links.iter().map(|(id, name)| format!("<li><a href=\"#{id}\">{name}</a></li>")).collect();
    format!(
        "<header>\n<h1>{LOGO}heist <span>{kind}</span></h1>\n<p class=\"place\">{}</p>\n{headline}<nav aria-label=\"On this page\"><ul>{links}</ul></nav>\n</header>\n",
        text(place),
    )
}

#[cfg(test)]
mod tests;
