//! What one look at a database takes: the catalog, and what is inside where that matters, in one round trip.

use stanchion_postgres::{Query, Row};

use super::catalog::{Catalog, Question, Unexpected};
use super::contents::{self, Contents};
use super::target::Wanted;

/// A look at one database, for one role.
pub struct Look {
    question: Question,
    /// The schemas to look into; none when only the database itself matters.
    schemas: Option<Vec<String>>,
}

/// What was seen.
pub struct View {
    /// The server, the role, and the databases themselves.
    pub catalog: Catalog,
    /// What is inside.
    pub contents: Contents,
}

impl Look {
    /// What there is to see for this role in this database.
    pub fn at(wanted: &Wanted, database: &str) -> Self {
        let schemas = schemas_of(wanted, database);
        Self {
            question: question(wanted),
            schemas: looks_inside(wanted, database, &schemas).then_some(schemas),
        }
    }

    /// The queries, for a pipeline.
    pub fn queries(&self) -> Vec<Query> {
        let mut queries = self.question.queries();
        if let Some(schemas) = &self.schemas {
            queries.extend(contents::queries(&self.question.role, schemas));
        }
        queries
    }

    /// The answers to [`Self::queries`].
    pub fn answer(&self, results: &[Vec<Row>]) -> Result<View, Unexpected> {
        let (catalog, contents) = results.split_at_checked(Question::ANSWERS).ok_or(Unexpected)?;
        Ok(View {
            catalog: self.question.answer(catalog)?,
            contents: match self.schemas {
                Some(_) => contents::answer(contents)?,
                None => Contents::default(),
            },
        })
    }
}

/// What to ask about a wanted role.
pub fn question(wanted: &Wanted) -> Question {
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
    Question {
        role: wanted.username.clone(),
        roles: wanted
            .member_of
            .iter()
            .map(|membership| membership.role.clone())
            .collect(),
        databases,
    }
}

/// The schemas of a database that are asked for, or were.
pub fn schemas_of(wanted: &Wanted, database: &str) -> Vec<String> {
    let asked = wanted
        .databases
        .get(database)
        .into_iter()
        .flat_map(|wish| wish.schemas.keys().cloned());
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
pub fn looks_inside(wanted: &Wanted, database: &str, schemas: &[String]) -> bool {
    let wish = wanted.databases.get(database);
    !schemas.is_empty() || wish.is_some_and(|wish| !wish.extensions.is_empty() || wish.revoke_public)
}
