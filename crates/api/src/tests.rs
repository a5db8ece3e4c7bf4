//! Tests of all kinds together.

mod accepted;
mod examples;
