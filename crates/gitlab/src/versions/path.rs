//! Upgrade paths through required stops.

use stanchion_api::gitlab::GitlabVersionMapSpec;

use super::resolve::{step, steps};
use super::{Minor, Step, Version};

/// The required upgrade stops before they became regular.
///
/// GitLab also names conditional stops (15.1, 16.0, 16.1, 16.2, 17.1) for installations with certain features, sizes or
/// kinds of database. The operator cannot see whether one applies, and to require them always would block upgrades that
/// GitLab allows: users who need one request it as a version. Charts before 15.0 do not support the values that the
/// operator sets.
const EARLY_STOPS: [(u32, u32); 7] = [(15, 0), (15, 4), (15, 11), (16, 3), (16, 7), (16, 11), (17, 3)];

/// Since 17.5 these minor versions of every major version.
const REGULAR_STOPS: [u32; 4] = [2, 5, 8, 11];
const REGULAR_SINCE: (u32, u32) = (17, 5);

/// Why there is no upgrade path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Blocked {
    /// Migrations of the database cannot be undone.
    #[error(
        "{running} runs, and GitLab cannot go back to {target}: the database has been migrated. Ask for {running} or \
         newer, or restore a backup that was made with {target} into a new instance"
    )]
    Downgrade {
        running: Version,
        /// The requested version.
        target: Version,
    },
    /// What was begun may have migrated the database.
    #[error(
        "an installation of {begun} was begun on this database, and GitLab cannot go back to {target}: the database may have \
         been migrated. Ask for {begun} or newer, or restore a backup that was made with {target} into a new instance"
    )]
    BelowBegun {
        begun: Version,
        /// The requested version.
        target: Version,
    },
    /// The map lacks what was begun.
    #[error(
        "an installation of {begun} was begun on this database, and {target} can only follow when it is complete: the version \
         map has neither {begun} nor a newer patch of it. Add its newest patch to the map"
    )]
    BegunMissing {
        begun: Version,
        /// The requested version.
        target: Version,
    },
    /// A stop on the path is not in the map.
    #[error(
        "an upgrade from {running} to {target} has the required stop {stop}, and the version map has no {stop}.x. Add \
         its newest patch to the map"
    )]
    StopMissing {
        /// The missing stop.
        stop: Minor,
        running: Version,
        /// The requested version.
        target: Version,
    },
}

/// The remaining steps, in order; the last is the target. Empty if the target runs.
///
/// A stop is passed once any patch of its minor version runs; it is installed with the newest patch in the map.
pub(crate) fn path(
    map: &GitlabVersionMapSpec,
    running: &Version,
    target: &Step,
) -> Result<Vec<Step>, Blocked> {
    let (running, goal) = (*running, target.version);
    if goal < running {
        return Err(Blocked::Downgrade {
            running,
            target: goal,
        });
    }
    if goal == running {
        return Ok(Vec::new());
    }
    let stop = |stop: Minor| {
        newest(map, stop).ok_or(Blocked::StopMissing {
            stop,
            running,
            target: goal,
        })
    };
    let mut path = stops(running.minor(), goal.minor())
        .map(stop)
        .collect::<Result<Vec<_>, _>>()?;
    path.push(target.clone());
    Ok(path)
}

/// The remaining steps after an installation of `begun` that was not completed. It may have migrated the database, so
/// nothing older follows, and its own minor version is completed before the next one. A patch of the minor version that
/// ran has no migrations that later versions rely on, so it need not be completed.
pub(crate) fn path_after_begun(
    map: &GitlabVersionMapSpec,
    running: Option<&Version>,
    begun: Version,
    target: &Step,
) -> Result<Vec<Step>, Blocked> {
    let goal = target.version;
    if goal < begun {
        return Err(Blocked::BelowBegun { begun, target: goal });
    }
    if let Some(running) = running.filter(|running| running.minor() == begun.minor()) {
        return path(map, running, target);
    }
    if goal.minor() == begun.minor() {
        return Ok(vec![target.clone()]);
    }
    let own = newest(map, begun.minor())
        .filter(|own| own.version >= begun)
        .ok_or(Blocked::BegunMissing { begun, target: goal })?;
    let rest = path(map, &own.version, target)?;
    Ok([vec![own], rest].concat())
}

/// The newest patch of a minor version in the map.
fn newest(map: &GitlabVersionMapSpec, minor: Minor) -> Option<Step> {
    steps(map)
        .filter(|(version, _)| version.minor() == minor)
        .max_by_key(|(version, _)| *version)
        .map(step)
}

/// The stops after one minor version and before another, in order.
fn stops(after: Minor, before: Minor) -> impl Iterator<Item = Minor> {
    let early = EARLY_STOPS.into_iter();
    let regular = (REGULAR_SINCE.0..=before.major)
        .flat_map(|major| REGULAR_STOPS.map(|minor| (major, minor)))
        .filter(|stop| *stop >= REGULAR_SINCE);
    early
        .chain(regular)
        .map(|(major, minor)| Minor { major, minor })
        .filter(move |stop| after < *stop && *stop < before)
}

#[cfg(test)]
mod tests;
