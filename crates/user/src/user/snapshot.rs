//! Inspects one database: the catalog, and its contents where they matter, in one round trip.

use stanchion_postgres::{Query, Row};

use super::catalog::{Catalog, CatalogQuery, Unexpected, Viewer};
use super::contents::{self, Contents};
use super::target::Wanted;

/// The inspection of one database, for one role.
pub struct SnapshotQuery {
    query: CatalogQuery,
    /// The schemas to inspect; `None` if only the database itself matters.
    schemas: Option<Vec<String>>,
}

/// The result of an inspection.
pub struct Snapshot {
    /// The server, the role, and the databases themselves.
    pub catalog: Catalog,
    /// The contents of the database.
    pub contents: Contents,
}

impl SnapshotQuery {
    /// The inspection for this role in this database.
    pub fn at(wanted: &Wanted, viewer: &Viewer, database: &str) -> Self {
        let schemas = schemas_of(wanted, database);
        Self {
            query: query(wanted, viewer),
            schemas: reads_contents(wanted, database, &schemas).then_some(schemas),
        }
    }

    /// The queries, for a pipeline.
    pub fn queries(&self) -> Vec<Query> {
        let mut queries = self.query.queries();
        if let Some(schemas) = &self.schemas {
            queries.extend(contents::queries(&self.query.role, schemas));
        }
        queries
    }

    /// Decodes the answers to [`Self::queries`].
    pub fn answer(&self, results: &[Vec<Row>]) -> Result<Snapshot, Unexpected> {
        let (catalog, contents) = results
            .split_at_checked(CatalogQuery::ANSWERS)
            .ok_or(Unexpected)?;
        Ok(Snapshot {
            catalog: self.query.answer(catalog)?,
            contents: match self.schemas {
                Some(_) => contents::answer(&self.query.viewer, contents)?,
                None => Contents::default(),
            },
        })
    }
}

/// The databases that the spec or an earlier spec names.
pub fn databases_of(wanted: &Wanted) -> Vec<String> {
    let mut databases: Vec<String> = wanted.databases.keys().cloned().collect();
    databases.extend(
        wanted
            .before
            .grants
            .iter()
            .filter_map(|grant| grant.database.clone()),
    );
    databases.sort();
    databases.dedup();
    databases
}

/// The catalog queries for a wanted role.
pub fn query(wanted: &Wanted, viewer: &Viewer) -> CatalogQuery {
    let requests = || wanted.databases.values();
    let owners = requests()
        .flat_map(|request| request.schemas.values())
        .flat_map(|schema| schema.default_for.iter());
    let mut roles: Vec<String> = wanted
        .member_of
        .iter()
        .map(|membership| &membership.role)
        .chain(owners)
        .cloned()
        .collect();
    roles.sort();
    roles.dedup();
    let parameters = wanted.role.parameters.keys();
    CatalogQuery {
        viewer: viewer.clone(),
        role: wanted.username.clone(),
        roles,
        databases: databases_of(wanted),
        template: wanted
            .create_database
            .as_ref()
            .and_then(|create| create.template.clone()),
        parameters: parameters.map(|name| name.to_ascii_lowercase()).collect(),
        extensions: requests()
            .flat_map(|request| request.extensions.iter().cloned())
            .collect(),
    }
}

/// The schemas of a database that the spec or an earlier spec names.
pub fn schemas_of(wanted: &Wanted, database: &str) -> Vec<String> {
    let asked = wanted
        .databases
        .get(database)
        .into_iter()
        .flat_map(|request| request.schemas.keys().cloned());
    let before = wanted
        .before
        .grants
        .iter()
        .filter(|grant| grant.database.as_deref() == Some(database));
    let mut all: Vec<String> = asked
        .chain(before.filter_map(|grant| grant.schema.clone()))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Whether more than the database itself matters.
pub fn reads_contents(wanted: &Wanted, database: &str, schemas: &[String]) -> bool {
    let request = wanted.databases.get(database);
    !schemas.is_empty()
        || request.is_some_and(|request| !request.extensions.is_empty() || request.revoke_public)
}
