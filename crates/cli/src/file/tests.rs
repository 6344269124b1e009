//! Reading and writing files of all kinds.

use std::fs;
use std::path::Path;

use heist_bench::record::Record;
use tempfile::{TempDir, tempdir};

use super::*;

fn names(folder: &TempDir) -> Vec<String> {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn a_record_survives_a_round_trip() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.json");
    let record = Record { commit: "abc".into(), ..Record::default() };
    let mut bytes = Vec::new();
    record.write(&mut bytes).unwrap();
    write(&path, &bytes).unwrap();
    assert_eq!(read_record(&path).unwrap(), record);
}

#[test]
fn a_check_changes_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a");
    check(&path).unwrap();
    assert!(names(&folder).is_empty());
    fs::write(&path, "before").unwrap();
    check(&path).unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(&folder).len()), ("before", 1));
}

#[test]
fn unwritable_paths_are_detected_before_writing() {
    let folder = tempdir().unwrap();
    let long = "a".repeat(300);
    for (path, why) in [
        ("none/a", "there is no folder"),
        ("", "it is a folder"),
        ("none/", "not the name of a file"),
        ("none/.", "not the name of a file"),
        (&long, ""),
    ] {
        let path = folder.path().join(path);
        for error in [check(&path).unwrap_err(), write(&path, b"x").unwrap_err()] {
            assert_eq!(error.exit, Exit::File);
            assert!(error.why.contains(why), "{error}");
        }
    }
}

#[test]
fn previous_contents_stay_if_the_write_fails() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), "before").unwrap();
    // The new file is written, but cannot replace a folder.
    assert!(replace(&path, None, b"after").is_err());
    assert_eq!(fs::read_to_string(path.join("inside")).unwrap(), "before");
    assert_eq!(names(&folder), ["a"]);
}

#[test]
fn the_temporary_file_never_overwrites() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "before").unwrap();
    assert!(write_new(&path, None, b"after").is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
}

#[test]
fn paths_to_one_file_are_the_same() {
    let folder = tempdir().unwrap();
    let (path, detour) = (
        folder.path().join("a"),
        folder.path().join("../").join(folder.path().file_name().unwrap()),
    );
    assert!(!is_same(&path, &path));
    fs::write(&path, "").unwrap();
    assert!(is_same(&path, &path) && is_same(&path, &detour.join("a")));
    assert!(!is_same(&path, &folder.path().join("b")));
}

#[test]
fn a_read_only_file_is_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "before").unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    for error in [check(&path).unwrap_err(), write(&path, b"after").unwrap_err()] {
        assert!(error.why.contains("read-only"), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
}

#[test]
fn stdout_has_two_names() {
    assert!(is_stdout(Path::new("-")) && is_stdout(Path::new("/dev/stdout")));
    assert!(!is_stdout(Path::new("./-")));
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn names_may_be_as_long_as_the_system_allows() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a".repeat(250));
        check(&path).unwrap();
        write(&path, b"long").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "long");
    }

    #[test]
    fn permissions_are_kept() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write(&path, b"after").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempdir().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("link"));
        symlink("a", &link).unwrap();
        for text in ["made", "replaced"] {
            check(&link).unwrap();
            write(&link, text.as_bytes()).unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(names(&folder), ["a", "link"]);
    }

    #[test]
    fn a_dangling_link_needs_a_folder() {
        let folder = tempdir().unwrap();
        for (name, target, why) in
            [("astray", "none/a", "there is no folder"), ("circle", "circle", "")]
        {
            let link = folder.path().join(name);
            symlink(target, &link).unwrap();
            for error in [check(&link).unwrap_err(), write(&link, b"x").unwrap_err()] {
                assert!(error.exit == Exit::File && error.why.contains(why), "{error}");
            }
        }
        assert_eq!(names(&folder), ["astray", "circle"]);
    }

    #[test]
    fn a_pipe_stays_a_pipe() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        check(&path).unwrap();
        let reader = thread::spawn({
            let path = path.clone();
            move || fs::read_to_string(path).unwrap()
        });
        write(&path, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(names(&folder), ["pipe"]);
    }

    #[test]
    fn a_device_stays_a_device() {
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}
