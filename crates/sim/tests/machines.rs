//! Machine files: those that are shipped can be simulated, and bad ones are explained.

use heist_sim::{Config, Machine, thread};

#[test]
fn shipped_machines_have_the_cores_and_sources_that_they_are_named_after() {
    let shape = |name: &str| {
        let machine = Machine::shipped(name).unwrap();
        assert!(!machine.sources.is_empty(), "{name} names its sources");
        (machine.sockets, machine.cores_per_cluster, machine.cores())
    };
    assert_eq!(shape("server-2x64"), (2, 8, 128));
    assert_eq!(shape("server-4x24"), (4, 24, 96));
    assert_eq!(shape("arm-64"), (1, 64, 64));
    assert_eq!(shape("desktop-16"), (1, 8, 16));
    for name in Machine::shipped_names() {
        let config = Config::new(Machine::shipped(name).unwrap());
        let (cores, _) = heist_sim::run(config, thread::parallelism).unwrap();
        assert_eq!(cores, Machine::shipped(name).unwrap().cores());
    }
}

/// A valid file.
const FILE: &str = r#"
    name = "two"
    sources = ["none"]
    sockets = 2
    nodes_per_socket = 1
    clusters_per_node = 1
    cores_per_cluster = 4
    cluster_transfer = 30
    node_transfer = [[30, 130], [130, 30]]
"#;

#[test]
fn a_file_can_set_costs() {
    let machine = Machine::parse(&format!("{FILE}\n[costs]\npause = 40")).unwrap();
    assert_eq!((machine.costs.pause, machine.cores()), (40.0, 8));
}

#[test]
fn bad_files_are_explained() {
    for (find, replace, message) in [
        ("sockets = 2", "sockets = 0", "set sockets to a number from 1 to 320"),
        ("cores_per_cluster = 4", "cores_per_cluster = 200", "use at most 320"),
        ("[[30, 130], [130, 30]]", "[[30]]", "give node_transfer 2 rows of 2 numbers each"),
        ("cluster_transfer = 30", "cluster_transfer = -1", "nanoseconds from 0 to 1,000,000"),
        ("sockets = 2", "sokets = 2", "unknown field `sokets`"),
        ("name = \"two\"", "", "missing field `name`"),
    ] {
        let error = Machine::parse(&FILE.replace(find, replace)).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let unknown = Machine::shipped("laptop").unwrap_err().to_string();
    assert!(unknown.contains("use one of server-2x64"), "{unknown}");
    let missing = Machine::read("no/such.toml".as_ref()).unwrap_err().to_string();
    assert!(missing.contains("no/such.toml"), "{missing}");
}
