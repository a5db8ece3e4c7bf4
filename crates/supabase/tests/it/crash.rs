//! Killed at any point, the operator reaches the same end state.

mod api;
mod scenario;
mod servers;
mod sql;
