//! Versions of GitLab, their charts, and upgrade paths.
//!
//! If an upgrade skips a required stop, the database is left half migrated: the chart notices only when Helm runs, and
//! the damage stays. So the path is computed before anything is installed.

mod charts;
mod path;
mod postgres;
mod resolve;
mod version;

use stanchion_api::gitlab::Values;

pub(crate) use charts::{installed_by, unmapped, version_of};
pub(crate) use path::{Blocked, path, path_after_begun};
pub(crate) use postgres::postgres;
pub(crate) use resolve::{by_chart, resolve};
use version::Minor;
pub(crate) use version::Version;

/// A version that can be installed, and its chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// GitLab's version.
    pub version: Version,
    /// The chart's version.
    pub chart: String,
    /// The values of the version map for this version.
    pub values: Values,
}
