//! What the services need in the database: roles, schemas, extensions, grants, triggers, a publication.
//!
//! | file | subject |
//! |---|---|
//! | `roles` | the table of roles, and their names |
//! | `steps`, `steps/*.sql` | the table of steps, and their text |
//! | `request` | what is asked, what came of it |
//! | `catalog` | what is there |
//! | `walls` | who made what the steps touch |
//! | `proof` | stored passwords that are known to fit |
//! | `rights`, `logins`, `plan` | what is left to do; pure |
//! | `initialise` | doing it |
//! | `made` | what came of it, written down |
//! | `remove`, `removal.sql` | taking that away again |
//!
//! Every step runs once and is recorded, with the hash of its text, in the table `_stanchion.steps` of the database
//! itself. Nothing that is there is dropped or replaced. All of it is one transaction, but for the database of
//! analytics and pooler, which PostgreSQL creates outside of any.

mod catalog;
mod initialise;
mod logins;
mod made;
mod mark;
mod plan;
mod proof;
mod remove;
mod request;
mod rights;
mod roles;
mod steps;
mod walls;

pub use initialise::{initialise, inspect};
pub use proof::Proof;
pub use remove::remove;
pub use request::{Note, Outcome, Request};
pub(crate) use rights::check_version;
pub use roles::{Login, Names};
