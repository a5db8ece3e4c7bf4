//! `GitlabInstance`: a GitLab, installed by Flux from GitLab's own chart.
//!
//! | module | subject |
//! |---|---|
//! | [`versions`] | which chart installs which version, and over which versions an upgrade leads |
//! | [`backends`] | the database, Redis and Elasticsearch that other operators run for an instance |
//! | [`storage`] | the buckets, and the three forms in which GitLab's parts want to be told of them |
//! | [`values`] | what the chart is told |
//! | [`flux`] | what Flux is told, and what it says |
//! | [`account`] | as whom Flux installs: never as itself |
//! | [`charts`] | where charts may come from |
//! | [`helm`] | what a plain `helm install` left behind |
//! | [`record`] | what outlives an instance: the version that ran last |
//! | [`instance`] | the controller: validate, observe, plan, apply, report |
//! | [`login`] | how GitLab reaches its database, Redis and mail server |

pub mod account;
pub mod backends;
pub mod charts;
pub mod flux;
pub mod helm;
pub mod instance;
pub mod login;
pub mod record;
mod setup;
pub mod storage;
pub mod values;
pub mod versions;

pub use instance::InstanceController;
pub use setup::Setup;
