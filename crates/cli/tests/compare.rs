//! `heist compare`: what it prints of files that are anybody's.

mod common;

use std::fs;
use std::path::Path;

use common::{directory, expect};
use heist_bench::record::Record;

/// Every text that the table or a doubt shows.
#[test]
fn nothing_of_a_file_reaches_the_terminal_as_it_is() {
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
    // The second time, there is nothing to doubt.
    for (files, doubted) in [([&plain, &record], 4), ([&record, &record], 0)] {
        let (table, doubts) = expect(&["compare", files[0], files[1]], 0);
        let broken = |c: char| c.is_control() && c != '\n';
        assert!(!table.contains(broken) && !doubts.contains(broken), "{table}{doubts}");
        for row in table.lines().filter(|line| line.starts_with('|')) {
            assert_eq!(row.replace(r"\|", "").matches('|').count(), 8, "{row}");
        }
        assert_eq!(doubts.lines().count(), doubted, "{doubts}");
    }
}
