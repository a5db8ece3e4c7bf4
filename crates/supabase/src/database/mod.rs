//! What the services need in the database: roles, schemas, extensions, grants, triggers, a publication.
//!
//! | file | subject |
//! |---|---|
//! | `roles` | the table of roles, and their names |
//! | `steps`, `steps/*.sql` | the table of steps, and their text |
//! | `request` | the request and its result |
//! | `catalog` | reads the current state |
//! | `isolation` | checks the owners of what the steps use |
//! | `privileges`, `logins`, `mark`, `pending` | what is left to do; pure |
//! | `initialise` | runs the steps |
//! | `created_objects` | records what was created |
//! | `remove`, `removal.sql` | removes it again |
//! | `orphans`, `orphans.sql` | removes what is left of it when the database is gone |
//!
//! Every step runs once and is recorded, with the hash of its text, in the table `_stanchion.steps` of the database
//! itself. Nothing that exists is dropped or replaced. All of it is one transaction, except for the internal database,
//! which PostgreSQL creates outside of any.

mod catalog;
mod created_objects;
mod initialise;
mod isolation;
mod logins;
mod mark;
mod orphans;
mod ownership;
mod pending;
mod privileges;
mod remove;
mod request;
mod roles;
mod steps;

pub use initialise::{initialise, inspect};
pub use orphans::remove_orphans;
pub(crate) use privileges::check_version;
pub use remove::remove;
pub(crate) use request::{Note, VerifiedPasswords};
pub use request::{Outcome, Request};
pub use roles::Login;
pub(crate) use roles::Names;
