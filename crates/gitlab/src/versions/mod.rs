//! Which chart installs which version of GitLab, and over which versions an upgrade leads.
//!
//! A version that is left out on the way, where GitLab says that it must not be, leaves the database half migrated: the
//! chart notices only when Helm runs, the database never forgets. So the way is laid down before anything is installed.

mod path;
mod postgres;
mod resolve;
mod version;

use stanchion_api::gitlab::Values;

pub use path::{Blocked, path};
pub use postgres::postgres;
pub use resolve::{Known, Unknown, by_chart, resolve};
pub use version::{Minor, NotAVersion, Version};

/// A version that can be installed, and what installs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// GitLab's version.
    pub version: Version,
    /// The chart's version.
    pub chart: String,
    /// What the version map tells the chart of this version.
    pub values: Values,
}
