//! The catalog queries. Their parameter types are known in advance, so all of them take one round trip.

use stanchion_postgres::Query;
use stanchion_postgres::types::Type;

use super::needs::Needs;
use super::sql;
use crate::model::ObjectType;

/// The subject of a query's rows, which determines how they are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// Settings for the following queries, without rows.
    Planner,
    Server,
    ActsAs,
    Roles,
    Members,
    Ancestry,
    Schemas,
    Relations,
    Routines,
    Types,
    Columns,
    Globals,
    Defaults,
    Elsewhere,
    Dependencies,
    Sessions,
}

/// The queries for these needs, each with the subject of its rows.
pub(super) fn queries(needs: &Needs, version: u32) -> Vec<(Subject, Query)> {
    let contents = || needs.contents.clone();
    let planner = |nested_loops: bool| {
        let setting = if nested_loops { "on" } else { "off" };
        (
            Subject::Planner,
            Query::new(sql::PLANNER).bind(setting.to_owned(), Type::TEXT),
        )
    };
    let mut queries = vec![
        planner(false),
        (Subject::Server, Query::new(sql::SERVER)),
        (Subject::ActsAs, Query::new(sql::ACTS_AS)),
        (Subject::Roles, Query::new(sql::ROLES).texts(needs.roles.clone())),
        (Subject::Members, members(needs, version)),
        (
            Subject::Schemas,
            Query::new(sql::SCHEMAS).texts(needs.schemas.clone()),
        ),
        (
            Subject::Defaults,
            Query::new(sql::DEFAULTS)
                .texts(contents())
                .texts(needs.managed.clone()),
        ),
    ];
    if !needs.joined.is_empty() {
        queries.push((
            Subject::Ancestry,
            Query::new(sql::ANCESTRY).texts(needs.joined.clone()),
        ));
    }
    if !needs.contents.is_empty() {
        let kinds = RELKINDS
            .iter()
            .filter(|(_, kind)| needs.all_of(*kind))
            .map(|(letter, _)| (*letter).to_owned());
        queries.push((
            Subject::Relations,
            Query::new(sql::RELATIONS)
                .texts(contents())
                .texts(kinds.collect())
                .texts(needs.names_of(ObjectType::is_relation)),
        ));
        for (subject, text, kind) in [
            (Subject::Routines, sql::ROUTINES, ObjectType::Function),
            (Subject::Types, sql::TYPES, ObjectType::Type),
        ] {
            let query = Query::new(text)
                .texts(contents())
                .bind(needs.all_of(kind), Type::BOOL)
                .texts(needs.names_of(|named| named == kind));
            queries.push((subject, query));
        }
    }
    if !needs.global.is_empty() {
        queries.push((Subject::Globals, globals(needs)));
    }
    if !needs.holders.is_empty() {
        queries.push((
            Subject::Elsewhere,
            Query::new(sql::ELSEWHERE)
                .texts(needs.holders.clone())
                .texts(contents()),
        ));
    }
    // The following queries concern few objects, each found by an index.
    queries.push(planner(true));
    if !needs.columns.is_empty() {
        let (schemas, relations) = needs.columns.iter().cloned().unzip();
        queries.push((
            Subject::Columns,
            Query::new(sql::COLUMNS).texts(schemas).texts(relations),
        ));
    }
    if !needs.retired.is_empty() {
        queries.push((
            Subject::Dependencies,
            Query::new(sql::DEPENDENCIES).texts(needs.retired.clone()),
        ));
        queries.push((
            Subject::Sessions,
            Query::new(sql::SESSIONS).texts(needs.retired.clone()),
        ));
    }
    queries
}

fn members(needs: &Needs, version: u32) -> Query {
    let of = |text| {
        Query::new(text)
            .texts(needs.groups.clone())
            .texts(needs.managed.clone())
    };
    if version < 160_000 {
        of(sql::MEMBERS_15)
    } else {
        of(sql::MEMBERS).texts(needs.retired.clone())
    }
}

/// The verifiers of roles with a password. Needs the privilege to read them.
pub(super) fn verifiers(needs: &Needs) -> Query {
    Query::new(sql::VERIFIERS).texts(needs.passwords.clone())
}

fn globals(needs: &Needs) -> Query {
    let names = |wanted: ObjectType| {
        needs
            .global
            .iter()
            .filter(|(kind, _)| *kind == wanted)
            .map(|(_, name)| name.clone())
            .collect::<Vec<_>>()
    };
    [
        ObjectType::Language,
        ObjectType::ForeignDataWrapper,
        ObjectType::ForeignServer,
        ObjectType::Tablespace,
        ObjectType::LargeObject,
        ObjectType::Parameter,
    ]
    .into_iter()
    .fold(Query::new(sql::GLOBALS), |query, kind| query.texts(names(kind)))
}

/// `pg_class.relkind`.
pub(super) const RELKINDS: [(&str, ObjectType); 6] = [
    ("r", ObjectType::Table),
    ("p", ObjectType::Table),
    ("v", ObjectType::View),
    ("m", ObjectType::MaterializedView),
    ("S", ObjectType::Sequence),
    ("f", ObjectType::ForeignTable),
];

/// `pg_default_acl.defaclobjtype`.
pub(super) const DEFAULT_KINDS: [(&str, ObjectType); 5] = [
    ("r", ObjectType::Table),
    ("S", ObjectType::Sequence),
    ("f", ObjectType::Function),
    ("T", ObjectType::Type),
    ("n", ObjectType::Schema),
];
