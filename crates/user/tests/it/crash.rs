//! Killed at any point, the operator reaches the same end state.

mod api;
mod sql;
mod story;
