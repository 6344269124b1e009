//! The cases: a program, its arguments and its input.

use std::path::{Path, PathBuf};

use crate::input::Input;

/// How the output of a program is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// Byte by byte.
    Exact,
    /// As a set of lines, without those that begin with a `#`: the program prints in the order in which its threads end, and
    /// a head with the time.
    Lines,
}

/// What is measured.
#[derive(Debug)]
pub(crate) struct Case {
    /// The name, which begins with that of the program.
    pub(crate) id: &'static str,
    /// What the program does, for the table.
    pub(crate) title: &'static str,
    /// The package and its version, or [`SMALL`].
    pub(crate) package: &'static str,
    /// The arguments before the input.
    arguments: &'static [&'static str],
    /// What it reads.
    pub(crate) input: Option<Input>,
    pub(crate) output: Output,
}

/// The package of the small programs of this repository.
pub(crate) const SMALL: &str = "small";

/// Returns all cases.
pub(crate) fn all() -> Vec<Case> {
    let small = |id, title| Case {
        id,
        title,
        package: SMALL,
        arguments: &[],
        input: None,
        output: Output::Exact,
    };
    let small = [
        small("kdtree", "builds 16 k-d trees of 100,000 points (kd-tree)"),
        small("bvh", "builds and traverses 20 hierarchies of 20,000 boxes (bvh)"),
        small("bodies", "120 steps of a pile of 1,000 boxes (rapier3d)"),
        small("frames", "14,000 loops over 64 to 4,000 elements (ndarray)"),
    ];
    tools().into_iter().chain(small).collect()
}

/// Returns the tools.
fn tools() -> Vec<Case> {
    let tool = |id, title, package, arguments, input, output| Case {
        id,
        title,
        package,
        arguments,
        input: Some(input),
        output,
    };
    const B3SUM: &str = "b3sum=1.8.7";
    vec![
        tool("b3sum/large", "hashes a file of 768 MiB", B3SUM, &[], Input::Large, Output::Exact),
        tool(
            "b3sum/small",
            "hashes 1,500 files of 4 to 256 KiB",
            B3SUM,
            &[],
            Input::Small,
            Output::Exact,
        ),
        tool(
            "dust",
            "sums the sizes of 40,000 files in 2,000 directories",
            "du-dust=1.2.7",
            &["--no-progress", "--no-colors", "--apparent-size", "--terminal-width=100"],
            Input::Tree,
            Output::Exact,
        ),
        tool(
            "fclones",
            "finds the duplicates among 6,000 files of 4 to 64 KiB",
            "fclones=0.35.0",
            &["--quiet", "group"],
            Input::Duplicates,
            Output::Lines,
        ),
        tool(
            "oxipng",
            "compresses an image of 1,024 × 768 pixels",
            "oxipng=10.2.1",
            &["--quiet", "--opt=2", "--stdout"],
            Input::Image,
            Output::Exact,
        ),
        tool(
            "tokei",
            "counts the lines of 8,000 source files",
            "tokei=15.0.0",
            &[],
            Input::Sources,
            Output::Exact,
        ),
    ]
}

/// Returns the cases with these names or of these programs; all, if there is no name.
pub(crate) fn selected(names: &[String]) -> Result<Vec<Case>, String> {
    let is_it = |case: &Case, name: &String| case.id == name || case.program() == name;
    if let Some(unknown) = names.iter().find(|name| !all().iter().any(|case| is_it(case, name))) {
        let ids: Vec<_> = all().iter().map(|case| case.id).collect();
        return Err(format!("there is no program {unknown}; there are {}", ids.join(", ")));
    }
    let wanted = |case: &Case| names.is_empty() || names.iter().any(|name| is_it(case, name));
    Ok(all().into_iter().filter(wanted).collect())
}

impl Case {
    /// Returns the name of the program.
    pub(crate) fn program(&self) -> &'static str {
        self.id.split('/').next().expect("a split has at least one part")
    }

    /// Returns the arguments, with those that name the input in this directory.
    pub(crate) fn arguments(&self, inputs: &Path) -> std::io::Result<Vec<PathBuf>> {
        let mut all: Vec<PathBuf> = self.arguments.iter().map(PathBuf::from).collect();
        if let Some(input) = self.input {
            all.extend(input.names(inputs)?);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Vec<&'static str> {
        let names: Vec<String> = names.iter().copied().map(String::from).collect();
        selected(&names).unwrap().iter().map(|case| case.id).collect()
    }

    #[test]
    fn a_name_is_that_of_a_case_or_of_a_program() {
        assert_eq!(ids(&["b3sum"]), ["b3sum/large", "b3sum/small"]);
        assert_eq!(ids(&["tokei", "b3sum/small"]), ["b3sum/small", "tokei"]);
        assert_eq!(ids(&[]).len(), all().len());
    }

    #[test]
    fn an_unknown_name_is_an_error_with_all_names() {
        let message = selected(&["b3".into()]).unwrap_err();
        assert!(
            message.contains("no program b3;") && message.contains("b3sum/large, "),
            "{message}"
        );
    }
}
