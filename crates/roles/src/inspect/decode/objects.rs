//! Decodes objects with privileges, and default privileges.

use std::collections::BTreeSet;
use std::sync::Arc;

use stanchion_postgres::Row;
use stanchion_postgres::server::SelfGrant;

use super::super::acl;
use super::super::queries::{DEFAULT_KINDS, RELKINDS};
use super::{Decoder, Unreadable, get};
use crate::facts::{AclEntry, DefaultAcl, Names, Object, RoleId, ServerFacts};
use crate::model::ObjectType;

/// Kind, schema, name and column of an object.
pub(super) type Key = (ObjectType, Option<Arc<str>>, Box<str>, Option<Box<str>>);

/// An object as decoded from a row.
struct Found<'a> {
    kind: ObjectType,
    schema: Option<Arc<str>>,
    name: &'a str,
    column: Option<&'a str>,
    types: Vec<String>,
    in_scope: bool,
}

impl<'a> Found<'a> {
    /// A managed object.
    fn new(kind: ObjectType, schema: Option<Arc<str>>, name: &'a str) -> Self {
        Self {
            kind,
            schema,
            name,
            column: None,
            types: vec![],
            in_scope: true,
        }
    }

    fn key(&self) -> Key {
        (
            self.kind,
            self.schema.clone(),
            self.name.into(),
            self.column.map(Into::into),
        )
    }
}

impl Decoder {
    pub(super) fn server(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "the server";
        self.facts.server = ServerFacts {
            version: u32::try_from(get::<i32>(row, 0, about)?).unwrap_or_default(),
            database: get(row, 1, about)?,
            user: get(row, 2, about)?,
            superuser: get::<Option<bool>>(row, 3, about)?.unwrap_or(false),
            reads_passwords: get(row, 4, about)?,
            acts_as: BTreeSet::new(),
            self_grant: SelfGrant::parse(get::<Option<&str>>(row, 7, about)?.unwrap_or_default()),
        };
        let found = Found::new(ObjectType::Database, None, get(row, 1, about)?);
        self.push(about, row, 5, found)
    }

    pub(super) fn schema(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "schemas";
        let name: Arc<str> = get::<&str>(row, 1, about)?.into();
        self.schemas.insert(get(row, 0, about)?, name.clone());
        let place = self.facts.objects.len();
        self.facts.schemas.insert(name.to_string(), place);
        let found = Found::new(ObjectType::Schema, None, &name);
        self.listed.insert(found.key());
        self.push(about, row, 2, found)
    }

    pub(super) fn relation(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "relations";
        let kind = table(&RELKINDS, get(row, 2, about)?, about)?;
        let found = self.contained(about, row, kind)?;
        self.push(about, row, 3, found)
    }

    pub(super) fn routine(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "routines";
        let found = Found {
            types: get(row, 2, about)?,
            ..self.contained(about, row, ObjectType::Function)?
        };
        self.push(about, row, 3, found)
    }

    pub(super) fn data_type(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "types";
        let found = self.contained(about, row, ObjectType::Type)?;
        self.push(about, row, 2, found)
    }

    /// An object in a schema: the columns begin with its schema's oid and its name.
    fn contained<'a>(
        &self,
        about: &'static str,
        row: &'a Row,
        kind: ObjectType,
    ) -> Result<Found<'a>, Unreadable> {
        let schema = self.schemas.get(&get(row, 0, about)?).cloned();
        Ok(Found::new(kind, schema, get(row, 1, about)?))
    }

    pub(super) fn column(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "columns";
        let schema: &str = get(row, 0, about)?;
        let found = Found {
            column: Some(get(row, 2, about)?),
            ..Found::new(ObjectType::Table, Some(schema.into()), get(row, 1, about)?)
        };
        // The query of the roles' other privileges may have returned it already.
        if !self.listed.insert(found.key()) {
            return Ok(());
        }
        self.push(about, row, 3, found)
    }

    pub(super) fn global(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "objects outside of schemas";
        let kind = kind(get(row, 0, about)?, about)?;
        let found = Found::new(kind, None, get(row, 1, about)?);
        self.listed.insert(found.key());
        self.push(about, row, 2, found)
    }

    pub(super) fn elsewhere(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "privileges elsewhere";
        let kind = kind(get(row, 0, about)?, about)?;
        let schema: Option<&str> = get(row, 1, about)?;
        let types: Option<Vec<String>> = get(row, 4, about)?;
        let found = Found {
            column: get(row, 3, about)?,
            types: types.unwrap_or_default(),
            in_scope: false,
            ..Found::new(kind, schema.map(Into::into), get(row, 2, about)?)
        };
        let key = found.key();
        if self.listed.contains(&key) {
            return Ok(());
        }
        if found.column.is_some() {
            self.listed.insert(key);
        }
        self.push(about, row, 5, found)
    }

    /// The owner and the ACL follow in the next two columns.
    fn push(
        &mut self,
        about: &'static str,
        row: &Row,
        owner: usize,
        found: Found<'_>,
    ) -> Result<(), Unreadable> {
        let acl: Option<Vec<&str>> = get(row, owner + 1, about)?;
        let owner = self.facts.names.id(get(row, owner, about)?);
        let acl = acl
            .map(|entries| entry_list(&entries, &mut self.facts.names, about))
            .transpose()?;
        self.facts.objects.push(Object {
            kind: found.kind,
            schema: found.schema,
            name: found.name.into(),
            column: found.column.map(Into::into),
            types: found.types.into(),
            owner,
            acl,
            in_scope: found.in_scope,
        });
        Ok(())
    }

    pub(super) fn default_acl(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "default privileges";
        let owner: RoleId = self.facts.names.id(get(row, 0, about)?);
        let acl: Vec<&str> = get(row, 3, about)?;
        let acl = entry_list(&acl, &mut self.facts.names, about)?;
        // Large objects have default privileges from PostgreSQL 18 on, which no manifest mentions.
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
            reason: format!("`{name}` is not a kind of object"),
        })
}

fn table(table: &[(&str, ObjectType)], letter: &str, about: &'static str) -> Result<ObjectType, Unreadable> {
    table
        .iter()
        .find(|(known, _)| *known == letter)
        .map(|(_, kind)| *kind)
        .ok_or_else(|| Unreadable {
            about,
            reason: format!("`{letter}` is not a kind of object"),
        })
}
