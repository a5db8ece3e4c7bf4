//! `GitlabInstance`: a GitLab, installed by Flux from GitLab's own chart.
//!
//! | module | subject |
//! |---|---|
//! | `versions` | which chart installs which version, and the required upgrade stops |
//! | [`backends`] | the database, Redis and Elasticsearch that other operators run for an instance |
//! | [`storage`] | the buckets, in the three formats that GitLab's parts need |
//! | `values` | the chart's values |
//! | [`flux`] | the objects of Flux, and their status |
//! | [`account`] | the `ServiceAccount` that Flux installs with |
//! | [`charts`] | allowed chart repositories |
//! | `helm` | reads the release of a plain `helm install` |
//! | `names` | how long an instance's name may be |
//! | `record` | the record of the last version, which outlives an instance |
//! | `instance` | the controller: validate, observe, plan, apply, report |
//! | `secret_keys` | reads a Secret of the user, and reports everything that is wrong with it at once |
//! | `login` | GitLab's logins to its database, Redis and mail server |

// Types are public for the traits of the kernel and for tests; a comment is only where it says more than the name.
#![allow(missing_docs)]

pub mod account;
pub mod backends;
pub mod charts;
pub mod flux;
mod helm;
mod instance;
mod login;
mod names;
mod record;
mod secret_keys;
mod setup;
pub mod storage;
mod values;
mod versions;

pub use instance::GitlabController;
pub use setup::Setup;
