//! `heist compare`: it must not pass text of untrusted files through to the terminal.

mod common;

use std::fs;
use std::path::Path;

use common::{directory, expect};
use heist_bench::record::Record;

/// Covers every text that the table or a caveat shows.
#[test]
fn text_of_files_is_made_safe() {
    const EVIL: &str = "x\x1b[2J\0\n| y |\r\u{9b}";
    let evil = || EVIL.to_owned();
    let folder = directory();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/made-up.json");
    let plain: Record = serde_json::from_slice(&fs::read(recorded).unwrap()).unwrap();
    let mut record = plain.clone();
    (record.commit, record.unit) = (evil(), evil());
    let machine = &mut record.machine;
    (machine.cpu, machine.kernel, machine.rustc) = (evil(), evil(), evil());
    for series in &mut record.samples {
        let values = series.values.values().next().unwrap().clone();
        series.values.insert(evil(), values);
        (series.workload, series.case, series.by) = (evil(), evil(), evil());
        series.item = Some(evil());
    }
    let [plain, record] = [("a.json", plain), ("b.json", record)].map(|(name, record)| {
        let path = folder.path().join(name);
        record.write(fs::File::create(&path).unwrap()).unwrap();
        path.to_str().unwrap().to_owned()
    });
    // A file compared with itself has no caveats.
    for (files, expected) in [([&plain, &record], 4), ([&record, &record], 0)] {
        let (table, caveats) = expect(&["compare", files[0], files[1]], 0);
        let broken = |c: char| c.is_control() && c != '\n';
        assert!(!table.contains(broken) && !caveats.contains(broken), "{table}{caveats}");
        for row in table.lines().filter(|line| line.starts_with('|')) {
            assert_eq!(row.replace(r"\|", "").matches('|').count(), 8, "{row}");
        }
        assert_eq!(caveats.lines().count(), expected, "{caveats}");
    }
}
