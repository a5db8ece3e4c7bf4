//! The manifest format, its parser and its checks.
//!
//! The types are the format. They accept every manifest of pgroles from 0.7.0 to 0.15.0; additions are optional. The
//! same types read a file (with locations, see [`crate::yaml`]) and the `spec` of a `PostgresPolicy`, and write the
//! output of `generate` and `render-bundle`.

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
pub(crate) use valid_until::canonical_timestamp;

/// Predefined roles belong to PostgreSQL: only their members can be managed.
pub(crate) fn is_predefined(role: &str) -> bool {
    role.starts_with("pg_")
}
