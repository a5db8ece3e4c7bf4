//! Killed anywhere, the operator ends up where it would have ended up anyway.

mod api;
mod servers;
mod sql;
mod story;
