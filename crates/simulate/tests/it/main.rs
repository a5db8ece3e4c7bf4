//! The simulator itself, and short campaigns of it: `make simulate` and `make fuzz` run long ones.

mod determinism;
mod kernel;
mod schemas;
