use std::fs;
use std::path::{Path, PathBuf};

use heist_bench::record::Record;

use super::*;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("heist-{name}-{}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = fs::read_dir(&self.0).unwrap().map(name).collect();
        names.sort();
        names.into_iter().map(|name| name.into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let folder = Folder::new("file-record");
    let path = folder.0.join("a.json");
    let record = Record { commit: "abc".into(), ..Record::default() };
    let mut bytes = Vec::new();
    record.write(&mut bytes).unwrap();
    write(&path, &bytes).unwrap();
    assert_eq!(read_record(&path).unwrap(), record);
}

#[test]
fn a_check_changes_nothing() {
    let folder = Folder::new("file-check");
    let path = folder.0.join("a");
    check(&path).unwrap();
    assert!(folder.names().is_empty());
    fs::write(&path, "before").unwrap();
    check(&path).unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), folder.names().len()), ("before", 1));
}

#[test]
fn what_cannot_be_written_is_known_before() {
    let folder = Folder::new("file-refused");
    let long = "a".repeat(300);
    for (path, why) in [
        ("none/a", "there is no folder"),
        ("", "it is a folder"),
        ("none/", "no name of a file"),
        ("none/.", "no name of a file"),
        (&long, ""),
    ] {
        let path = folder.0.join(path);
        for error in [check(&path).unwrap_err(), write(&path, b"x").unwrap_err()] {
            assert_eq!(error.exit, Exit::File);
            assert!(error.why.contains(why), "{error}");
        }
    }
}

#[test]
fn what_was_there_stays_whole_if_the_write_fails() {
    let folder = Folder::new("file-whole");
    let path = folder.0.join("a");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), "before").unwrap();
    // It is filled, but cannot take the place of a folder.
    assert!(replace(&path, None, b"after").is_err());
    assert_eq!(fs::read_to_string(path.join("inside")).unwrap(), "before");
    assert_eq!(folder.names(), ["a"]);
}

#[test]
fn nothing_is_written_through_what_is_there() {
    let folder = Folder::new("file-part");
    let path = folder.0.join("a");
    fs::write(&path, "before").unwrap();
    assert!(fill(&path, None, b"after").is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
}

#[test]
fn a_file_is_the_same_by_any_name() {
    let folder = Folder::new("file-same");
    let (path, detour) =
        (folder.0.join("a"), folder.0.join("../").join(folder.0.file_name().unwrap()));
    assert!(!is_same(&path, &path));
    fs::write(&path, "").unwrap();
    assert!(is_same(&path, &path) && is_same(&path, &detour.join("a")));
    assert!(!is_same(&path, &folder.0.join("b")));
}

#[test]
fn a_read_only_file_is_refused() {
    let folder = Folder::new("file-read-only");
    let path = folder.0.join("a");
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
    fn a_name_may_be_as_long_as_the_system_lets_it() {
        let folder = Folder::new("file-long");
        let path = folder.0.join("a".repeat(250));
        check(&path).unwrap();
        write(&path, b"long").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "long");
    }

    #[test]
    fn permissions_are_kept() {
        let folder = Folder::new("file-permissions");
        let path = folder.0.join("a");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write(&path, b"after").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = Folder::new("file-link");
        let (file, link) = (folder.0.join("a"), folder.0.join("link"));
        symlink("a", &link).unwrap();
        for text in ["made", "replaced"] {
            check(&link).unwrap();
            write(&link, text.as_bytes()).unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(folder.names(), ["a", "link"]);
    }

    #[test]
    fn a_link_to_nothing_needs_a_folder() {
        let folder = Folder::new("file-astray");
        for (name, target, why) in
            [("astray", "none/a", "there is no folder"), ("circle", "circle", "")]
        {
            let link = folder.0.join(name);
            symlink(target, &link).unwrap();
            for error in [check(&link).unwrap_err(), write(&link, b"x").unwrap_err()] {
                assert!(error.exit == Exit::File && error.why.contains(why), "{error}");
            }
        }
        assert_eq!(folder.names(), ["astray", "circle"]);
    }

    #[test]
    fn a_pipe_stays_a_pipe() {
        let folder = Folder::new("file-pipe");
        let path = folder.0.join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        check(&path).unwrap();
        let reader = thread::spawn({
            let path = path.clone();
            move || fs::read_to_string(path).unwrap()
        });
        write(&path, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(folder.names(), ["pipe"]);
    }

    #[test]
    fn a_device_stays_a_device() {
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}
