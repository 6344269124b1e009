//! Selects the cases of a run and the entries that take part in them.

use std::error::Error;
use std::fmt;

use crate::row::Row;

/// The cases and entries that a run should have.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Names of cases. A name matches exactly, or else as a prefix up to a slash, or else as a component between
    /// slashes, or else as a substring. Empty selects all cases.
    pub cases: Vec<String>,
    /// The names of the entries that take part. Empty selects all.
    pub peers: Vec<String>,
    /// Numbers of workers. Empty selects all, and the cases without such a number.
    pub workers: Vec<usize>,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A case.
    Case,
    /// An entry that takes part.
    Peer,
    /// A number of workers.
    Workers,
}

/// An error: no case, entry or number of workers has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// What the name should stand for.
    pub kind: Kind,
    /// The name that was given.
    pub asked: String,
    /// The names that exist.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = &self.asked;
        match self.kind {
            Kind::Case if asked.trim_end_matches('/').is_empty() => {
                f.write_str("the name is empty")
            }
            Kind::Case => write!(f, "no case has `{asked}` in its name"),
            Kind::Peer => write!(f, "no entry of these cases is named `{asked}`"),
            Kind::Workers => write!(f, "none of these cases has {asked} workers"),
        }
    }
}

impl Error for UnknownName {}

/// A case, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The name by which it is selected.
    pub id: String,
    /// The case in words.
    pub title: String,
    /// The number of workers, if cases differ by it.
    pub workers: Option<usize>,
    /// The names of the entries.
    pub peers: Vec<&'static str>,
}

impl Case {
    /// Describes a row.
    pub fn of(row: &Row) -> Self {
        Self {
            id: row.id(),
            title: row.title.clone(),
            workers: row.workers,
            peers: row.entries.iter().map(|entry| entry.name).collect(),
        }
    }
}

impl Selection {
    /// Returns the selected rows with their selected entries.
    ///
    /// # Errors
    ///
    /// Returns an error for a name that no case has, or that no entry of these cases has.
    pub fn of(&self, rows: Vec<Row>) -> Result<Vec<Row>, UnknownName> {
        let rows = self.by_name(rows)?;
        let rows = self.by_workers(rows)?;
        self.by_peers(rows)
    }

    fn by_name(&self, mut rows: Vec<Row>) -> Result<Vec<Row>, UnknownName> {
        let ids: Vec<String> = rows.iter().map(Row::id).collect();
        let mut wanted = vec![self.cases.is_empty(); rows.len()];
        for asked in &self.cases {
            let name = asked.trim_end_matches('/');
            let found = MATCHES.iter().find(|has| ids.iter().any(|id| has(id, name)));
            let Some(has) = found.filter(|_| !name.is_empty()) else {
                return Err(unknown(Kind::Case, asked, ids));
            };
            wanted.iter_mut().zip(&ids).for_each(|(wanted, id)| *wanted |= has(id, name));
        }
        let mut wanted = wanted.into_iter();
        rows.retain(|_| wanted.next() == Some(true));
        Ok(rows)
    }

    fn by_workers(&self, mut rows: Vec<Row>) -> Result<Vec<Row>, UnknownName> {
        if self.workers.is_empty() {
            return Ok(rows);
        }
        let mut known: Vec<usize> = rows.iter().filter_map(|row| row.workers).collect();
        known.sort_unstable();
        known.dedup();
        if let Some(asked) = self.workers.iter().find(|&asked| !known.contains(asked)) {
            let known = known.iter().map(usize::to_string).collect();
            return Err(unknown(Kind::Workers, &asked.to_string(), known));
        }
        rows.retain(|row| row.workers.is_some_and(|workers| self.workers.contains(&workers)));
        Ok(rows)
    }

    fn by_peers(&self, mut rows: Vec<Row>) -> Result<Vec<Row>, UnknownName> {
        if self.peers.is_empty() {
            return Ok(rows);
        }
        let mut known: Vec<&str> =
            rows.iter().flat_map(|row| row.entries.iter().map(|entry| entry.name)).collect();
        known.sort_unstable();
        known.dedup();
        if let Some(asked) = self.peers.iter().find(|asked| !known.contains(&asked.as_str())) {
            let known = known.into_iter().map(str::to_owned).collect();
            return Err(unknown(Kind::Peer, asked, known));
        }
        for row in &mut rows {
            row.entries.retain(|entry| self.peers.iter().any(|asked| asked == entry.name));
        }
        rows.retain(|row| !row.entries.is_empty());
        Ok(rows)
    }
}

/// The ways in which a name can match, the closest first: `sort` must not select `cilksort`.
const MATCHES: [fn(&str, &str) -> bool; 4] = [
    |id, asked| id == asked,
    |id, asked| id.strip_prefix(asked).is_some_and(|rest| rest.starts_with('/')),
    |id, asked| format!("/{id}/").contains(&format!("/{asked}/")),
    |id, asked| id.contains(asked),
];

fn unknown(kind: Kind, asked: &str, known: Vec<String>) -> UnknownName {
    UnknownName { kind, asked: asked.into(), known }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;

    fn rows() -> Vec<Row> {
        let times = [1.0; 3];
        let mut rows = vec![
            row("inside/1", &[("heist", times), ("rayon", times)]),
            row("inside/16", &[("heist", times), ("rayon", times)]),
            row("outside/2", &[("heist", times), ("tokio", times)]),
            row("idle", &[("heist", times)]),
        ];
        rows.iter_mut().zip([1, 16, 2]).for_each(|(row, workers)| row.workers = Some(workers));
        rows
    }

    fn select(selection: &Selection) -> Result<Vec<String>, UnknownName> {
        Ok(selection.of(rows())?.iter().map(Row::id).collect())
    }

    fn named(names: &[&str]) -> Selection {
        let cases = names.iter().map(|&name| name.into()).collect();
        Selection { cases, ..Selection::default() }
    }

    #[test]
    fn several_names_select_the_union() {
        let found = select(&named(&["outside", "idle"])).unwrap();
        assert_eq!(found, ["spawn/outside/2", "spawn/idle"]);
        assert_eq!(select(&named(&[])).unwrap().len(), 4);
    }

    #[test]
    fn a_whole_name_selects_that_case_alone() {
        assert_eq!(select(&named(&["spawn/inside/1"])).unwrap(), ["spawn/inside/1"]);
    }

    #[test]
    fn closer_matches_take_precedence() {
        let ids = |asked: &str| {
            let names = ["cilksort/1", "sort/stable", "trace/sort", "outside/24", "uts/light/1"];
            let rows = names.into_iter().map(|name| {
                let (workload, case) = name.split_once('/').unwrap();
                Row { workload, ..row(case, &[]) }
            });
            let rows = named(&[asked]).of(rows.collect())?;
            Ok::<_, UnknownName>(rows.iter().map(Row::id).collect::<Vec<_>>())
        };
        for (asked, expected) in [
            ("sort", &["sort/stable"][..]),
            ("sort/", &["sort/stable"]),
            ("uts", &["uts/light/1"]),
            ("uts/light", &["uts/light/1"]),
            ("light/1", &["uts/light/1"]),
            ("1", &["cilksort/1", "uts/light/1"]),
            ("trace/sort", &["trace/sort"]),
            ("ilk", &["cilksort/1"]),
            ("s", &["cilksort/1", "sort/stable", "trace/sort", "outside/24", "uts/light/1"]),
        ] {
            assert_eq!(ids(asked).unwrap(), expected, "{asked}");
        }
        for nothing in ["", "/"] {
            assert_eq!(ids(nothing).unwrap_err().kind, Kind::Case);
        }
    }

    #[test]
    fn an_unknown_case_is_an_error_that_lists_the_known_ones() {
        let error = select(&named(&["idle", "isnide"])).unwrap_err();
        assert_eq!((error.kind, error.asked.as_str()), (Kind::Case, "isnide"));
        assert_eq!(error.known.len(), 4);
        assert_eq!(error.to_string(), "no case has `isnide` in its name");
    }

    #[test]
    fn only_selected_peers_take_part() {
        let selection = Selection { peers: vec!["tokio".into()], ..Selection::default() };
        let rows = selection.of(rows()).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(Case::of(&rows[0]).peers, ["tokio"]);
        let selection = Selection { peers: vec!["tokio".into()], ..named(&["inside"]) };
        let error = select(&selection).unwrap_err();
        assert_eq!((error.kind, error.known), (Kind::Peer, vec!["heist".into(), "rayon".into()]));
    }

    #[test]
    fn an_unknown_number_of_workers_is_an_error() {
        let of = |workers| Selection { workers, ..Selection::default() };
        assert_eq!(select(&of(vec![16, 2])).unwrap(), ["spawn/inside/16", "spawn/outside/2"]);
        let error = select(&of(vec![2, 3])).unwrap_err();
        assert_eq!((error.kind, error.asked.as_str()), (Kind::Workers, "3"));
        assert_eq!(error.known, ["1", "2", "16"]);
    }
}
