//! Tests of the page of a simulation.

use std::path::Path;

use super::*;

/// A record with two workloads, three strategies, three numbers of cores and two seeds.
fn made_up() -> SimRecord {
    let point = |workload: &str, strategy: &str, cores: usize, seed: u64| {
        let time = 1_000_000 * cores as u64;
        serde_json::json!({
            "workload": workload, "strategy": strategy, "cores": cores, "seed": seed,
            "efficiency": 1.0 / (cores as f64).sqrt() - 0.01 * seed as f64, "elapsed": 1_000_000, "parts": 9, "tasks": 9,
            "moved": 2, "parks": 1, "worked": cores, "ramp": 5_000, "tail": 900,
            "split": {"work": time / 2, "hits": 1, "misses": time / 4, "pauses": 0, "system_calls": 10, "allocation": 1,
                "clock": 1, "idle": time / 4},
            "places": [{"place": "heist/src/idle/mod.rs:110", "stall": 12_345, "queued": 45, "operations": 99, "transfers": 7}],
        })
    };
    let mut points = Vec::new();
    for workload in ["join", "sort"] {
        for strategy in ["work-stealing", "locked-deques", "global-queue"] {
            for cores in [1, 8, 64] {
                points.extend([1, 2].map(|seed| point(workload, strategy, cores, seed)));
            }
        }
    }
    serde_json::from_value(serde_json::json!({
        "kind": "heist-simulation", "format": 1, "version": "0.1.0", "command": "heist sim --cores 1,8,64",
        "machine": heist_sim_workloads::Machine::generic(64), "first_seed": 1, "seeds": 2, "span": 4_000_000,
        "points": points,
    }))
    .unwrap()
}

fn parse(record: &SimRecord) -> Result<SimRecord, Failure> {
    read(Path::new("sim.json"), &serde_json::to_vec(record).unwrap())
}

#[test]
fn a_page_has_all_figures() {
    let page = page(&made_up());
    for (kind, number) in [("efficiency", 2), ("split", 6), ("ends", 6)] {
        assert_eq!(page.matches(&format!("data-chart=\"{kind}\"")).count(), number, "{kind}");
    }
    assert_eq!(page.matches("class=\"band ").count(), 6);
    assert!(page.contains("heist/src/idle/mod.rs:110") && page.contains("docs/SIMULATION.md"));
    assert!(page.contains("wake_latency") && page.contains("heist sim --cores 1,8,64"));
    assert!(!page.contains("NaN") && !page.contains("inf%"));
    let place =
        |id: &str| page.find(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("{id}"));
    assert!(place("efficiency") < place("calibration") && place("calibration") < place("split"));
}

#[test]
fn the_calibration_is_beside_the_curves() {
    let page = page(&made_up());
    let section = page.split("<section id=\"calibration\"").nth(1).unwrap();
    let section = section.split("</section>").next().unwrap();
    let heading = section.split("</h2>").next().unwrap();
    assert!(heading.contains("simulated against measured on an AMD EPYC"), "{heading}");
    assert!(section.contains("simulated on the machine generic"), "{section}");
    for (row, cells) in [
        ("hand-over, one way", &["32.1", "44.7"][..]),
        ("fetch_add of two threads, 32 pauses between", &["410.6", "414.5"]),
        ("join", &["0.96", "0.96", "0.95", "0.95", "0.98", "0.97"]),
        ("sort", &["0.60", "0.49", "0.58", "0.40", "0.44", "0.41"]),
    ] {
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        let row = format!("<tr><th scope=\"row\">{row}</th>{cells}</tr>");
        assert!(section.contains(&row), "{row}");
    }
    assert_eq!(page.matches("Simulated / real time of the model dev-2 on two workers").count(), 2);
    assert!(
        page.contains(
            "0.49 with work-stealing, 0.40 with locked-deques and 0.41 with global-queue"
        )
    );
}

/// Tasks from another socket were not compared with real times.
#[test]
fn a_curve_without_calibration_has_none_beside_it() {
    let mut record = made_up();
    for point in &mut record.points {
        point.workload = "outside-far".into();
    }
    assert!(!page(&record).contains("Simulated / real time of the model dev-2 on two workers"));
}

#[test]
fn every_figure_says_that_it_is_simulated() {
    let page = page(&made_up());
    let captions: Vec<&str> = page.split("<figcaption>").skip(1).collect();
    assert_eq!(captions.len(), 22);
    for caption in captions {
        assert!(caption.split("</figcaption>").next().unwrap().contains("simulated"), "{caption}");
    }
}

#[test]
fn one_number_of_cores_is_enough() {
    let mut record = made_up();
    record.points.retain(|point| point.cores == 64 && point.seed == 1);
    assert!(!page(&record).contains("NaN"));
}

#[test]
fn text_of_the_file_cannot_run() {
    const EVIL: &str = "</title></script>\"'><script>alert(1)</script>";
    let mut record = made_up();
    for text in [&mut record.command, &mut record.version, &mut record.machine.name] {
        *text = EVIL.into();
    }
    record.machine.sources = vec![EVIL.into()];
    for point in &mut record.points {
        for text in [&mut point.workload, &mut point.strategy, &mut point.places[0].place] {
            text.push_str(EVIL);
        }
    }
    assert!(!page(&record).contains("<script>alert"));
}

#[test]
fn files_of_another_version_are_reported_as_such() {
    let mut record = made_up();
    assert_eq!(parse(&record).unwrap(), record);
    record.points.clear();
    assert!(parse(&record).unwrap_err().why.contains("no points"));
    let other = r#"{"kind": "heist-simulation", "format": 99}"#;
    assert!(SimRecord::is_in(other.as_bytes()));
    let failure = read(Path::new("sim.json"), other.as_bytes()).unwrap_err();
    assert!(failure.why.contains("newer heist"), "{failure}");
    assert!(!SimRecord::is_in(br#"{"samples": []}"#));
}
