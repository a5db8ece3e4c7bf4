//! Resolves a requested version to an exact version and its chart.

use std::fmt;

use stanchion_api::gitlab::{ChartOf, GitlabVersionMapSpec};

use super::{Step, Version};

/// How many versions and aliases an error names, so that it stays one line.
const NAMED: usize = 8;

/// The contents of the version map, for errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The newest versions, newest first.
    pub versions: Vec<Version>,
    /// Aliases and their targets.
    pub aliases: Vec<(String, String)>,
}

/// A version that cannot be found in the version map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unknown {
    /// Neither an alias, nor a version, nor a prefix of one.
    #[error(
        "the version map has no version \"{wanted}\": {known}. Add it to the map, or ask for one that is there"
    )]
    Version {
        /// The requested version.
        wanted: String,
        /// The contents of the map.
        known: Known,
    },
    /// An alias whose target is not in the map.
    #[error(
        "alias {} points to {target}, which is not in the version map: {known}. Add it to the map, or correct the \
         alias",
        chain(.aliases)
    )]
    Dangling {
        /// The aliases that were followed, in order.
        aliases: Vec<String>,
        /// The last target.
        target: String,
        /// The contents of the map.
        known: Known,
    },
    /// Aliases that refer to each other.
    #[error("the aliases {} form a cycle; point one at a version", chain(.0))]
    Circle(Vec<String>),
    /// The only matching entry is not an exact version.
    #[error(
        "\"{entry}\" in the version map is not an exact version such as 17.11.7, so \"{wanted}\" finds none. \
         Correct the entry"
    )]
    Entry {
        /// The key in the map.
        entry: String,
        /// The requested version.
        wanted: String,
    },
}

/// The version and the chart of `wanted`: an alias, an exact version, or a prefix, which selects the highest version
/// that begins with it.
pub(crate) fn resolve(map: &GitlabVersionMapSpec, wanted: &str) -> Result<Step, Unknown> {
    let (aliases, name) = follow(map, wanted)?;
    if let Some(found) = steps(map)
        .filter(|(version, _)| begins_with(version, name))
        .max_by_key(|(version, _)| *version)
    {
        return Ok(step(found));
    }
    if let Some(entry) = map.versions.keys().find(|entry| names(entry, name)) {
        return Err(Unknown::Entry {
            entry: entry.clone(),
            wanted: wanted.to_owned(),
        });
    }
    let known = Known::of(map);
    Err(if aliases.is_empty() {
        Unknown::Version {
            wanted: wanted.to_owned(),
            known,
        }
    } else {
        Unknown::Dangling {
            aliases,
            target: name.to_owned(),
            known,
        }
    })
}

/// The version that the map installs with this chart; the highest if there are several.
pub(crate) fn by_chart(map: &GitlabVersionMapSpec, chart: &str) -> Option<Step> {
    steps(map)
        .filter(|(_, entry)| entry.chart_version == chart)
        .max_by_key(|(version, _)| *version)
        .map(step)
}

/// The entries of the map. Invalid ones are skipped: they matter only if they are requested.
pub(super) fn steps(map: &GitlabVersionMapSpec) -> impl Iterator<Item = (Version, &ChartOf)> {
    map.versions
        .iter()
        .filter_map(|(name, chart)| Some((name.parse().ok()?, chart)))
}

pub(super) fn step((version, chart): (Version, &ChartOf)) -> Step {
    Step {
        version,
        chart: chart.chart_version.clone(),
        values: chart.values.clone(),
    }
}

/// The aliases from `wanted` on, and the first name that is not an alias.
fn follow<'a>(map: &'a GitlabVersionMapSpec, wanted: &'a str) -> Result<(Vec<String>, &'a str), Unknown> {
    let (mut followed, mut name) = (Vec::new(), wanted);
    while let Some(next) = map.aliases.get(name) {
        let current = followed.iter().any(|alias| alias == name);
        followed.push(name.to_owned());
        if current {
            return Err(Unknown::Circle(followed));
        }
        name = next;
    }
    Ok((followed, name))
}

/// Whether a version equals the name or begins with its numbers: `18.1` is a prefix of 18.1.6, not of 18.11.6.
fn begins_with(version: &Version, name: &str) -> bool {
    name.parse() == Ok(*version) || names(&version.to_string(), name)
}

fn names(entry: &str, name: &str) -> bool {
    entry
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn chain(aliases: &[String]) -> String {
    aliases.join(" -> ")
}

impl Known {
    fn of(map: &GitlabVersionMapSpec) -> Self {
        let mut versions: Vec<_> = steps(map).map(|(version, _)| version).collect();
        versions.sort_unstable_by(|a, b| b.cmp(a));
        versions.truncate(NAMED);
        let aliases = map.aliases.iter().take(NAMED);
        Self {
            versions,
            aliases: aliases
                .map(|(name, target)| (name.clone(), target.clone()))
                .collect(),
        }
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.versions.is_empty() {
            return f.write_str("it has no versions at all");
        }
        let versions: Vec<_> = self.versions.iter().map(Version::to_string).collect();
        write!(f, "its newest are {}", versions.join(", "))?;
        if self.aliases.is_empty() {
            return Ok(());
        }
        let aliases: Vec<_> = self
            .aliases
            .iter()
            .map(|(name, target)| format!("{name} ({target})"))
            .collect();
        write!(f, ", its aliases {}", aliases.join(", "))
    }
}

#[cfg(test)]
mod tests;
