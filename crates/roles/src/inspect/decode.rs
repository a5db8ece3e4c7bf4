//! From catalog rows to facts. A column that is not what it should be is an error, not a default.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use secrecy::SecretString;
use stanchion_postgres::Row;
use stanchion_postgres::types::FromSql;

use super::acl;
use super::queries::{DEFAULT_KINDS, RELKINDS, Subject};
use crate::facts::{
    AclEntry, DefaultAcl, Dependency, Edge, Facts, Names, Object, RoleFacts, RoleId, ServerFacts,
};
use crate::guc;
use crate::manifest::canonical_timestamp;
use crate::model::{ObjectType, RoleState};

/// The server answered with something that this program does not understand.
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

/// Collects facts from the rows of one query after the other.
#[derive(Default)]
pub(super) struct Decoder {
    facts: Facts,
    /// Schemas by oid.
    schemas: HashMap<u32, Arc<str>>,
}

impl Decoder {
    pub(super) fn add(&mut self, subject: Subject, rows: &[Row]) -> Result<(), Unreadable> {
        rows.iter().try_for_each(|row| match subject {
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
        })
    }

    pub(super) fn verifiers(&mut self, rows: &[Row]) -> Result<(), Unreadable> {
        for row in rows {
            let name: String = get(row, 0, "passwords")?;
            let verifier: Option<String> = get(row, 1, "passwords")?;
            if let Some(role) = self.facts.roles.get_mut(&name) {
                role.verifier = Some(verifier.map_or_else(SecretString::default, SecretString::from));
            }
        }
        Ok(())
    }

    pub(super) fn server_facts(&self) -> &ServerFacts {
        &self.facts.server
    }

    pub(super) fn finish(self) -> Facts {
        self.facts
    }

    fn server(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "the server";
        self.facts.server = ServerFacts {
            version: u32::try_from(get::<i32>(row, 0, about)?).unwrap_or_default(),
            database: get(row, 1, about)?,
            user: get(row, 2, about)?,
            superuser: get::<Option<bool>>(row, 3, about)?.unwrap_or(false),
            reads_passwords: get(row, 4, about)?,
            acts_as: BTreeSet::new(),
        };
        let name = self.facts.server.database.clone();
        self.push(
            about,
            row,
            ObjectType::Database,
            None,
            &name,
            None,
            vec![],
            5,
            6,
            true,
        )
    }

    fn role(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "roles";
        let expires: Option<String> = get(row, 10, about)?;
        let config: Option<Vec<String>> = get(row, 12, about)?;
        let config = config.unwrap_or_default();
        let state = RoleState {
            login: get(row, 2, about)?,
            superuser: get(row, 3, about)?,
            createdb: get(row, 4, about)?,
            createrole: get(row, 5, about)?,
            inherit: get(row, 6, about)?,
            replication: get(row, 7, about)?,
            bypassrls: get(row, 8, about)?,
            connection_limit: get(row, 9, about)?,
            comment: get(row, 11, about)?,
            password_valid_until: expires.map(|text| canonical_timestamp(&text).unwrap_or(text)),
            config: config
                .iter()
                .filter_map(|setting| setting.split_once('='))
                .map(|(name, value)| guc::canonical(name, value))
                .collect(),
        };
        let role = RoleFacts {
            oid: get(row, 0, about)?,
            state,
            verifier: None,
        };
        self.facts.roles.insert(get(row, 1, about)?, role);
        Ok(())
    }

    fn member(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "memberships";
        self.facts.memberships.push(Edge {
            role: get(row, 0, about)?,
            member: get(row, 1, about)?,
            grantor: get(row, 2, about)?,
            by_bootstrap: get(row, 3, about)?,
            admin: get(row, 4, about)?,
            inherit: get(row, 5, about)?,
            set: get(row, 6, about)?,
        });
        Ok(())
    }

    fn schema(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "schemas";
        let name: Arc<str> = get::<String>(row, 1, about)?.into();
        self.schemas.insert(get(row, 0, about)?, name.clone());
        self.facts
            .schemas
            .insert(name.to_string(), self.facts.objects.len());
        self.push(
            about,
            row,
            ObjectType::Schema,
            None,
            &name,
            None,
            vec![],
            2,
            3,
            true,
        )
    }

    fn relation(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "relations";
        let kind = table(&RELKINDS, get(row, 2, about)?, about)?;
        self.contained(about, row, kind, vec![], 3, 4)
    }

    fn routine(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "routines";
        let types = get(row, 2, about)?;
        self.contained(about, row, ObjectType::Function, types, 3, 4)
    }

    fn data_type(&mut self, row: &Row) -> Result<(), Unreadable> {
        self.contained("types", row, ObjectType::Type, vec![], 2, 3)
    }

    /// An object of one of the schemas: its schema's oid and its name come first.
    fn contained(
        &mut self,
        about: &'static str,
        row: &Row,
        kind: ObjectType,
        types: Vec<String>,
        owner: usize,
        acl: usize,
    ) -> Result<(), Unreadable> {
        let schema = self.schemas.get(&get(row, 0, about)?).cloned();
        let name: &str = get(row, 1, about)?;
        self.push(about, row, kind, schema, name, None, types, owner, acl, true)
    }

    fn column(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "columns";
        let schema: &str = get(row, 0, about)?;
        let column: &str = get(row, 2, about)?;
        self.push(
            about,
            row,
            ObjectType::Table,
            Some(schema.into()),
            get(row, 1, about)?,
            Some(column),
            vec![],
            3,
            4,
            true,
        )
    }

    fn global(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "objects outside of schemas";
        let kind = kind(get(row, 0, about)?, about)?;
        self.push(
            about,
            row,
            kind,
            None,
            get(row, 1, about)?,
            None,
            vec![],
            2,
            3,
            true,
        )
    }

    fn elsewhere(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "privileges elsewhere";
        let kind = kind(get(row, 0, about)?, about)?;
        let schema: Option<&str> = get(row, 1, about)?;
        let name: &str = get(row, 2, about)?;
        let column: Option<&str> = get(row, 3, about)?;
        let known = self
            .facts
            .objects
            .iter()
            .filter(|_| schema.is_none() || column.is_some())
            .any(|object| {
                object.kind.same_namespace(kind)
                    && object.schema.as_deref() == schema
                    && &*object.name == name
                    && object.column.as_deref() == column
            });
        if known {
            return Ok(());
        }
        let types: Option<Vec<String>> = get(row, 4, about)?;
        self.push(
            about,
            row,
            kind,
            schema.map(Arc::from),
            name,
            column,
            types.unwrap_or_default(),
            5,
            6,
            false,
        )
    }

    #[allow(clippy::too_many_arguments)] // The shape of a row, known in one place a query.
    fn push(
        &mut self,
        about: &'static str,
        row: &Row,
        kind: ObjectType,
        schema: Option<Arc<str>>,
        name: &str,
        column: Option<&str>,
        types: Vec<String>,
        owner: usize,
        acl: usize,
        in_scope: bool,
    ) -> Result<(), Unreadable> {
        let owner = self.facts.names.id(get(row, owner, about)?);
        let acl: Option<Vec<&str>> = get(row, acl, about)?;
        let acl = acl
            .map(|entries| entry_list(&entries, &mut self.facts.names, about))
            .transpose()?;
        self.facts.objects.push(Object {
            kind,
            schema,
            name: name.into(),
            column: column.map(Into::into),
            types: types.into(),
            owner,
            acl,
            in_scope,
        });
        Ok(())
    }

    fn default_acl(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "default privileges";
        let owner: RoleId = self.facts.names.id(get(row, 0, about)?);
        let acl: Vec<&str> = get(row, 3, about)?;
        let acl = entry_list(&acl, &mut self.facts.names, about)?;
        // Large objects have defaults from PostgreSQL 18 on; no manifest mentions them.
        if let Ok(kind) = table(&DEFAULT_KINDS, get(row, 2, about)?, about) {
            self.facts.defaults.push(DefaultAcl {
                owner,
                schema: get(row, 1, about)?,
                kind,
                acl,
            });
        }
        Ok(())
    }

    fn dependency(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "dependencies";
        self.facts
            .drops
            .entry(get(row, 0, about)?)
            .or_default()
            .dependencies
            .push(Dependency {
                database: get(row, 1, about)?,
                owned: get(row, 2, about)?,
                count: get(row, 3, about)?,
                example: get(row, 4, about)?,
            });
        Ok(())
    }

    fn sessions(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "sessions";
        self.facts.drops.entry(get(row, 0, about)?).or_default().sessions = get(row, 1, about)?;
        Ok(())
    }
}

fn entry_list(texts: &[&str], names: &mut Names, about: &'static str) -> Result<Box<[AclEntry]>, Unreadable> {
    texts
        .iter()
        .map(|text| {
            acl::parse(text, names).ok_or_else(|| Unreadable {
                about,
                reason: format!("`{text}` is no ACL entry"),
            })
        })
        .collect()
}

fn kind(name: &str, about: &'static str) -> Result<ObjectType, Unreadable> {
    ObjectType::ALL
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| Unreadable {
            about,
            reason: format!("`{name}` is no kind of object"),
        })
}

fn table(table: &[(&str, ObjectType)], letter: &str, about: &'static str) -> Result<ObjectType, Unreadable> {
    table
        .iter()
        .find(|(known, _)| *known == letter)
        .map(|(_, kind)| *kind)
        .ok_or_else(|| Unreadable {
            about,
            reason: format!("`{letter}` is no kind of object"),
        })
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize, about: &'static str) -> Result<T, Unreadable> {
    row.try_get(column)
        .map_err(|error| Unreadable::new(about, &error))
}
