//! Local PostgreSQL servers: the programs, a data directory, and a process that answers.

mod initialise;
mod install;
mod server;
mod version;

pub use initialise::{Administrator, initialise};
pub use install::{is_present, newest, programs};
pub use server::Server;
pub use version::{Version, of_data, release};
