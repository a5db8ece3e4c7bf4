//! `stanchion ui`: the fleet as a page in the browser, on loopback, with a person's own kubeconfig and permissions.
//!
//! | module | subject | |
//! |---|---|---|
//! | `server` | starts everything; the addresses and their handlers | I/O |
//! | `guard` | token, cookie, `Host`, `Origin`, response headers | pure, except for random numbers |
//! | `live` | the objects of all kinds, kept current by watches | reads |
//! | `stream` | notifies a browser when its page has changed | I/O |
//! | `act` | approves or rejects a plan, as the user | writes |
//! | `query` | search and filters in an address | pure |
//! | `sql`, `access` | a plan's SQL; who has which access and why | pure |
//! | `page` | values to HTML | pure |
//!
//! The pages are rendered here; `assets/` contains one style sheet and one script, which refreshes a page when it
//! changes. Without the script, everything but the zoom of a graph works, too.

mod access;
mod act;
mod guard;
mod live;
mod page;
mod query;
mod server;
mod sql;
mod stream;

pub use server::{Server, ServerError};
