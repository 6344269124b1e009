//! The contract of `heist report`, in particular for files with wrong contents.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::directory;
use tempfile::TempDir;

fn file(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn report(file: &Path, output: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heist"));
    command.args(["report".as_ref(), file.as_os_str(), "-o".as_ref(), output.as_os_str()]);
    command.output().unwrap()
}

fn made_up() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/made-up.json")
}

/// Checks that the command fails with the exit code for files and with this message, and leaves nothing
/// behind.
#[track_caller]
fn refuses(file: &Path, output: &Path, said: &str) {
    let result = report(file, output);
    let stderr = String::from_utf8(result.stderr).unwrap();
    assert_eq!(result.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains(said), "{stderr}");
    assert!(stderr.lines().count() >= 2, "no advice: {stderr}");
    assert!(!output.is_file());
}

#[test]
fn a_page_is_written_and_its_path_is_printed() {
    let folder = directory();
    let output = file(&folder, "page.html", "what was there before");
    let result = report(&made_up(), &output);
    assert_eq!(result.status.code(), Some(0));
    assert!(String::from_utf8(result.stdout).unwrap().contains("page.html"));
    assert!(fs::read_to_string(&output).unwrap().starts_with("<!DOCTYPE html>"));
    assert_eq!(names(&folder), ["page.html"]);
}

#[test]
fn files_with_other_contents_are_refused() {
    let folder = directory();
    let output = folder.path().join("page.html");
    refuses(&folder.path().join("none.json"), &output, "cannot read samples from");
    refuses(folder.path(), &output, "cannot read samples from");
    refuses(&file(&folder, "empty.json", ""), &output, "it is not JSON");
    refuses(&file(&folder, "text.json", "not JSON"), &output, "it is not JSON");
    refuses(
        &file(&folder, "other.json", r#"{"a": 1}"#),
        &output,
        "not a benchmark record: missing field",
    );
    let nothing = r#"{"arguments": [], "machine": {"cpu": "", "cores": 1, "kernel": "", "rustc": ""}, "commit": "",
        "peers": {}, "rounds": 0, "hand_off_nanoseconds": [], "samples": []}"#;
    refuses(&file(&folder, "nothing.json", nothing), &output, "it has no samples");
}

#[test]
fn files_of_a_newer_heist_are_reported_as_such() {
    let folder = directory();
    let output = folder.path().join("page.html");
    let text = fs::read_to_string(made_up()).unwrap().replacen('{', r#"{"version": 99,"#, 1);
    let path = file(&folder, "newer.json", &text);
    assert_eq!(report(&path, &output).status.code(), Some(0));
    let said = "was written by a newer heist";
    assert!(fs::read_to_string(&output).unwrap().contains(said));
    let path = path.to_str().unwrap();
    let (_, caveats) = common::expect(&["compare", path, made_up().to_str().unwrap()], 0);
    assert!(caveats.contains(&format!("the first file {said}")), "{caveats}");
    fs::remove_file(&output).unwrap();
    let other = text.replace(r#""samples": ["#, r#""samples": [7,"#);
    refuses(&file(&folder, "other.json", &other), &output, &format!("it {said}"));
}

/// Covers the files in `bench/record/`, which different versions of `heist bench` have written.
#[test]
fn recorded_runs_can_be_shown_and_compared() {
    let folder = directory();
    let output = folder.path().join("page.html");
    for name in ["deque", "duel", "fork", "pipeline", "pool"] {
        let recorded = format!("../../bench/record/{name}.json");
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join(recorded);
        assert_eq!(report(&recorded, &output).status.code(), Some(0), "{name}");
        assert!(fs::read_to_string(&output).unwrap().contains("data-chart=\"comparison\""));
        let path = recorded.to_str().unwrap();
        let (table, caveats) = common::expect(&["compare", path, path], 0);
        let lines = table.lines().filter(|line| line.ends_with("| no difference seen |")).count();
        assert_eq!(
            lines,
            table.lines().filter(|line| line.starts_with("| ")).count() - 1,
            "{name}"
        );
        assert!(lines > 1 && caveats.is_empty(), "{name}: {caveats}");
    }
}

#[test]
fn samples_are_never_replaced_by_their_page() {
    let folder = directory();
    let samples = file(&folder, "a.json", &fs::read_to_string(made_up()).unwrap());
    let result = report(&samples, &folder.path().join(".").join("a.json"));
    let stderr = String::from_utf8(result.stderr).unwrap();
    assert_eq!(result.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("the file with the samples"), "{stderr}");
    assert_eq!(fs::read(&samples).unwrap(), fs::read(made_up()).unwrap());
}

#[test]
fn unwritable_paths_are_refused() {
    let folder = directory();
    refuses(&made_up(), &folder.path().join("none/page.html"), "there is no folder");
    refuses(&made_up(), folder.path(), "it is a folder");
    assert!(names(&folder).is_empty());
}
