//! The manifest: what a user writes.
//!
//! The types are the format. They accept every manifest of pgroles from 0.7.0 to 0.15.0, and what we add is
//! optional. The same types read a file (with places, see [`crate::yaml`]), the `spec` of a `PostgresPolicy`,
//! and write what `generate` and `render-bundle` print.

mod bundle;
mod check;
mod diagnostic;
mod load;
mod reference;
mod schema;
mod suggest;
mod types;
mod valid_until;

pub use bundle::{
    Bundle, BundleSource, Claims, Composed, Document, DocumentScope, Facet, ManagedKey, PolicyName,
    SchemaFacet, ScopedSchema, Shared, SourceFile, compose,
};
pub use check::check;
pub use diagnostic::{Diagnostic, Invalid, Path, Severity, Strictness};
pub use load::{Loaded, load, load_bundle, load_document};
pub use reference::reference;
pub use schema::json_schema;
pub use types::*;
pub use valid_until::canonical_timestamp;

/// Predefined roles belong to PostgreSQL: they can have members, and nothing else about them can be managed.
pub fn is_predefined(role: &str) -> bool {
    role.starts_with("pg_")
}
