//! The kinds of objects that carry privileges, and PostgreSQL's rules for each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Privilege, Privileges};

// The order is that of the names.
/// A kind of object that has privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectType {
    /// The connected database.
    Database,
    /// A foreign-data wrapper.
    ForeignDataWrapper,
    /// A foreign server.
    ForeignServer,
    /// A foreign table.
    ForeignTable,
    /// A function, procedure, aggregate or window function.
    Function,
    /// A procedural language.
    Language,
    /// A large object, named by its number.
    LargeObject,
    /// A materialized view.
    MaterializedView,
    /// A configuration parameter (PostgreSQL 15 and newer).
    Parameter,
    /// A schema.
    Schema,
    /// A sequence.
    Sequence,
    /// A table, partitioned or not.
    Table,
    /// A tablespace.
    Tablespace,
    /// A type or a domain.
    Type,
    /// A view.
    View,
}

/// Properties of a kind of object.
#[derive(Debug)]
pub struct KindSpec {
    /// The name in a manifest.
    pub name: &'static str,
    /// The keyword of GRANT.
    pub keyword: &'static str,
    /// The privileges that such an object can carry.
    pub privileges: Privileges,
    /// Whether such an object is in a schema, and `*` can therefore match it.
    pub in_schema: bool,
    /// Privileges of PUBLIC on a new object by default.
    pub public: Privileges,
    /// The keyword of ALTER DEFAULT PRIVILEGES, if it supports the kind.
    pub defaults: Option<&'static str>,
}

const RELATION: Privileges = Privileges::of(&[
    Privilege::Delete,
    Privilege::Insert,
    Privilege::Maintain,
    Privilege::References,
    Privilege::Select,
    Privilege::Trigger,
    Privilege::Truncate,
    Privilege::Update,
]);
const USAGE: Privileges = Privileges::of(&[Privilege::Usage]);
const EXECUTE: Privileges = Privileges::of(&[Privilege::Execute]);

const fn kind(name: &'static str, keyword: &'static str, privileges: Privileges) -> KindSpec {
    KindSpec {
        name,
        keyword,
        privileges,
        in_schema: false,
        public: Privileges::NONE,
        defaults: None,
    }
}

const fn relation(name: &'static str) -> KindSpec {
    KindSpec {
        in_schema: true,
        ..kind(name, "TABLE", RELATION)
    }
}

static DATABASE: KindSpec = KindSpec {
    public: Privileges::of(&[Privilege::Connect, Privilege::Temporary]),
    ..kind(
        "database",
        "DATABASE",
        Privileges::of(&[Privilege::Connect, Privilege::Create, Privilege::Temporary]),
    )
};
static FOREIGN_DATA_WRAPPER: KindSpec = kind("foreign_data_wrapper", "FOREIGN DATA WRAPPER", USAGE);
static FOREIGN_SERVER: KindSpec = kind("foreign_server", "FOREIGN SERVER", USAGE);
static FOREIGN_TABLE: KindSpec = relation("foreign_table");
static FUNCTION: KindSpec = KindSpec {
    in_schema: true,
    public: EXECUTE,
    defaults: Some("ROUTINES"),
    ..kind("function", "ROUTINE", EXECUTE)
};
static LANGUAGE: KindSpec = KindSpec {
    public: USAGE,
    ..kind("language", "LANGUAGE", USAGE)
};
static LARGE_OBJECT: KindSpec = kind(
    "large_object",
    "LARGE OBJECT",
    Privileges::of(&[Privilege::Select, Privilege::Update]),
);
static MATERIALIZED_VIEW: KindSpec = relation("materialized_view");
static PARAMETER: KindSpec = kind(
    "parameter",
    "PARAMETER",
    Privileges::of(&[Privilege::AlterSystem, Privilege::Set]),
);
static SCHEMA: KindSpec = KindSpec {
    defaults: Some("SCHEMAS"),
    ..kind(
        "schema",
        "SCHEMA",
        Privileges::of(&[Privilege::Create, Privilege::Usage]),
    )
};
static SEQUENCE: KindSpec = KindSpec {
    in_schema: true,
    defaults: Some("SEQUENCES"),
    ..kind(
        "sequence",
        "SEQUENCE",
        Privileges::of(&[Privilege::Select, Privilege::Update, Privilege::Usage]),
    )
};
static TABLE: KindSpec = KindSpec {
    defaults: Some("TABLES"),
    ..relation("table")
};
static TABLESPACE: KindSpec = kind("tablespace", "TABLESPACE", Privileges::of(&[Privilege::Create]));
static TYPE: KindSpec = KindSpec {
    in_schema: true,
    public: USAGE,
    defaults: Some("TYPES"),
    ..kind("type", "TYPE", USAGE)
};
static VIEW: KindSpec = relation("view");

impl ObjectType {
    /// Every kind, in the order of its name.
    pub const ALL: [Self; 15] = [
        Self::Database,
        Self::ForeignDataWrapper,
        Self::ForeignServer,
        Self::ForeignTable,
        Self::Function,
        Self::Language,
        Self::LargeObject,
        Self::MaterializedView,
        Self::Parameter,
        Self::Schema,
        Self::Sequence,
        Self::Table,
        Self::Tablespace,
        Self::Type,
        Self::View,
    ];

    /// The privileges that a single column can carry.
    pub const COLUMN: Privileges = Privileges::of(&[
        Privilege::Insert,
        Privilege::References,
        Privilege::Select,
        Privilege::Update,
    ]);

    /// Properties of this kind.
    pub fn spec(self) -> &'static KindSpec {
        match self {
            Self::Database => &DATABASE,
            Self::ForeignDataWrapper => &FOREIGN_DATA_WRAPPER,
            Self::ForeignServer => &FOREIGN_SERVER,
            Self::ForeignTable => &FOREIGN_TABLE,
            Self::Function => &FUNCTION,
            Self::Language => &LANGUAGE,
            Self::LargeObject => &LARGE_OBJECT,
            Self::MaterializedView => &MATERIALIZED_VIEW,
            Self::Parameter => &PARAMETER,
            Self::Schema => &SCHEMA,
            Self::Sequence => &SEQUENCE,
            Self::Table => &TABLE,
            Self::Tablespace => &TABLESPACE,
            Self::Type => &TYPE,
            Self::View => &VIEW,
        }
    }

    /// The name in a manifest.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// Whether the kinds share one namespace, so that a name means the same object under either. PostgreSQL accepts
    /// `GRANT … ON TABLE` for every relation.
    pub fn same_namespace(self, other: Self) -> bool {
        self == other || (self.is_relation() && other.is_relation())
    }

    /// Tables, views, sequences: the contents of `pg_class`.
    pub fn is_relation(self) -> bool {
        matches!(
            self,
            Self::ForeignTable | Self::MaterializedView | Self::Sequence | Self::Table | Self::View
        )
    }

    /// The kind that default privileges for this one belong to: PostgreSQL has only TABLES for tables and all kinds of
    /// views.
    #[must_use]
    pub fn default_kind(self) -> Self {
        match self {
            Self::ForeignTable | Self::MaterializedView | Self::View => Self::Table,
            other => other,
        }
    }
}

impl std::fmt::Display for ObjectType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_kinds_is_the_order_of_their_names() {
        assert!(ObjectType::ALL.is_sorted());
        assert!(ObjectType::ALL.map(ObjectType::name).is_sorted());
    }

    #[test]
    fn the_manifest_names_are_those_of_serde() {
        for kind in ObjectType::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
