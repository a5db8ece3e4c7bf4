//! Decodes catalog rows into facts. An unexpected column is an error, never a default.

mod objects;
mod roles;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use stanchion_postgres::Row;
use stanchion_postgres::types::FromSql;

use super::queries::Subject;
use crate::expand::compact;
use crate::facts::{Facts, ServerFacts};
use objects::Key;

/// The server returned something that this version cannot read.
#[derive(Debug, thiserror::Error)]
#[error("the catalog's answer about {about} was not understood: {reason}")]
pub struct Unreadable {
    about: &'static str,
    reason: String,
}

impl Unreadable {
    pub(super) fn new(about: &'static str, error: &dyn std::error::Error) -> Self {
        Self {
            about,
            reason: error.to_string(),
        }
    }
}

/// Collects facts from rows, of one query after the other.
#[derive(Default)]
pub(super) struct Decoder {
    facts: Facts,
    /// Schemas by oid.
    schemas: HashMap<u32, Arc<str>>,
    /// Objects that a later query may return again.
    listed: HashSet<Key>,
}

impl Decoder {
    pub(super) fn add(&mut self, subject: Subject, row: &Row) -> Result<(), Unreadable> {
        match subject {
            Subject::Planner => Ok(()),
            Subject::Server => self.server(row),
            Subject::ActsAs => {
                self.facts
                    .server
                    .acts_as
                    .insert(get(row, 0, "the executor's memberships")?);
                Ok(())
            }
            Subject::Roles => self.role(row),
            Subject::Members => self.member(row),
            Subject::Ancestry => self.ancestor(row),
            Subject::Schemas => self.schema(row),
            Subject::Relations => self.relation(row),
            Subject::Routines => self.routine(row),
            Subject::Types => self.data_type(row),
            Subject::Columns => self.column(row),
            Subject::Globals => self.global(row),
            Subject::Defaults => self.default_acl(row),
            Subject::Elsewhere => self.elsewhere(row),
            Subject::Dependencies => self.dependency(row),
            Subject::Sessions => self.sessions(row),
        }
    }

    pub(super) fn server_facts(&self) -> &ServerFacts {
        &self.facts.server
    }

    pub(super) fn finish(mut self) -> Facts {
        self.facts.roles = compact(self.facts.roles);
        self.facts
    }
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize, about: &'static str) -> Result<T, Unreadable> {
    row.try_get(column)
        .map_err(|error| Unreadable::new(about, &error))
}
