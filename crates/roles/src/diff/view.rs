//! The state after roles and schemas are changed, which grants are compared with.
//!
//! When the owner of a schema changes, its ACL changes to the new owner, and a new schema has no ACL. A comparison with
//! the state before would grant what the transfer gives, or miss what it revokes.

use std::collections::HashMap;

use crate::expand::{Desired, GrantKey, is_excepted};
use crate::facts::{AclEntry, Facts, Names, Object, RoleId};
use crate::model::{ObjectType, Signature};
use crate::plan::{Mode, Target};

/// A schema, or none.
type Schema = Option<Box<str>>;

pub(super) struct View<'a> {
    /// Objects that change before grants are made, by their index in the facts, followed by new ones.
    changed: HashMap<usize, Object>,
    facts: &'a Facts,
    count: usize,
    pub(super) names: Names,
    /// Objects by schema and kind.
    by_kind: HashMap<(Schema, ObjectType), Vec<usize>>,
    /// Objects by name; routines and relations can share one.
    by_name: HashMap<(Schema, Box<str>), Vec<usize>>,
    /// Columns with privileges, by the relation's name.
    columns: HashMap<(Schema, Box<str>), Vec<usize>>,
}

impl<'a> View<'a> {
    pub(super) fn new(desired: &Desired, facts: &'a Facts, mode: Mode) -> Self {
        let mut view = Self {
            changed: HashMap::new(),
            facts,
            count: facts.objects.len(),
            names: facts.names.clone(),
            by_kind: HashMap::new(),
            by_name: HashMap::new(),
            columns: HashMap::new(),
        };
        for (name, owner) in &desired.schemas {
            view.schema_to_be(name, owner.as_deref(), mode);
        }
        view.index();
        view
    }

    fn schema_to_be(&mut self, name: &str, owner: Option<&str>, mode: Mode) {
        match (self.facts.schemas.get(name), owner) {
            (None, owner) => {
                let owner = self.names.id(owner.unwrap_or(&self.facts.server.user));
                let object = Object {
                    kind: ObjectType::Schema,
                    schema: None,
                    name: name.into(),
                    column: None,
                    types: Box::default(),
                    owner,
                    acl: None,
                    in_scope: true,
                };
                self.changed.insert(self.count, object);
                self.count += 1;
            }
            (Some(place), Some(owner)) if mode.transfers_schemas() => {
                let owner = self.names.id(owner);
                if let Some(object) = self
                    .facts
                    .objects
                    .get(*place)
                    .filter(|object| object.owner != owner)
                {
                    self.changed.insert(*place, handed_over(object, owner));
                }
            }
            _ => {}
        }
    }

    fn index(&mut self) {
        for place in 0..self.count {
            let Some(object) = self.changed.get(&place).or_else(|| self.facts.objects.get(place)) else {
                continue;
            };
            let schema: Schema = object.schema.as_deref().map(Into::into);
            let name = object.name.clone();
            if object.column.is_some() {
                self.columns.entry((schema, name)).or_default().push(place);
                continue;
            }
            if object.in_scope {
                self.by_kind
                    .entry((schema.clone(), object.kind))
                    .or_default()
                    .push(place);
            }
            self.by_name.entry((schema, name)).or_default().push(place);
        }
    }

    /// The object at an index.
    pub(super) fn object(&self, place: usize) -> Option<&Object> {
        self.changed.get(&place).or_else(|| self.facts.objects.get(place))
    }

    /// Every object with its index.
    pub(super) fn objects(&self) -> impl Iterator<Item = (usize, &Object)> {
        (0..self.count).filter_map(|place| self.object(place).map(|object| (place, object)))
    }

    pub(super) fn schema(&self, name: &str) -> Option<&Object> {
        let places = self.by_name.get(&(None, name.into()))?;
        places
            .iter()
            .filter_map(|place| self.object(*place))
            .find(|object| object.kind == ObjectType::Schema)
    }

    /// The existing objects that a rule matches.
    pub(super) fn meant_by(&self, key: &GrantKey) -> Vec<usize> {
        let schema: Schema = key.schema.as_deref().map(Into::into);
        let Some(name) = &key.name else {
            return self
                .by_kind
                .get(&(None, ObjectType::Database))
                .cloned()
                .unwrap_or_default();
        };
        if key.is_wildcard() {
            let all = self
                .by_kind
                .get(&(schema, key.kind))
                .map(Vec::as_slice)
                .unwrap_or_default();
            return all
                .iter()
                .copied()
                .filter(|place| {
                    key.except.is_empty() || !self.object(*place).is_some_and(|object| excepted(key, object))
                })
                .collect();
        }
        let signature = (key.kind == ObjectType::Function)
            .then(|| Signature::parse(name).ok())
            .flatten();
        let bare = match (&signature, key.kind) {
            (Some(signature), _) => signature.name.clone(),
            // Names of settings are lower case.
            (None, ObjectType::Parameter) => name.to_ascii_lowercase(),
            _ => name.clone(),
        };
        let named = self
            .by_name
            .get(&(schema, bare.into()))
            .map(Vec::as_slice)
            .unwrap_or_default();
        named
            .iter()
            .copied()
            .filter(|place| {
                self.object(*place).is_some_and(|object| {
                    object.kind.same_namespace(key.kind)
                        && signature
                            .as_ref()
                            .is_none_or(|signature| signature.means(&object.name, &object.types))
                })
            })
            .collect()
    }

    /// The existing object of a statement.
    pub(super) fn find(&self, target: &Target, kind: ObjectType) -> Option<&Object> {
        let schema: Schema = target.schema.as_deref().map(Into::into);
        let places = self.by_name.get(&(schema, target.name.clone()))?;
        places
            .iter()
            .filter_map(|place| self.object(*place))
            .find(|object| {
                object.kind.same_namespace(kind)
                    && target.types.as_ref().is_none_or(|types| **types == *object.types)
            })
    }

    /// A column of an object, if it has privileges.
    pub(super) fn column(&self, of: &Object, column: &str) -> Option<&Object> {
        let schema: Schema = of.schema.as_deref().map(Into::into);
        let places = self.columns.get(&(schema, of.name.clone()))?;
        places
            .iter()
            .filter_map(|place| self.object(*place))
            .find(|object| object.column.as_deref() == Some(column))
    }
}

/// Whether the rule excludes the object; a routine matches any spelling of its signature.
fn excepted(key: &GrantKey, object: &Object) -> bool {
    is_excepted(&key.except, &object.display_name())
        || (object.kind == ObjectType::Function
            && key
                .except
                .iter()
                .filter_map(|pattern| Signature::parse(pattern).ok())
                .any(|signature| {
                    signature.arguments.is_some() && signature.means(&object.name, &object.types)
                }))
}

/// The ACL after ALTER … OWNER TO: the new owner replaces the old one.
fn handed_over(object: &Object, owner: RoleId) -> Object {
    let replace = |role: RoleId| if role == object.owner { owner } else { role };
    let acl = object.acl.as_ref().map(|acl| {
        acl.iter()
            .map(|entry| AclEntry {
                grantee: replace(entry.grantee),
                grantor: replace(entry.grantor),
                ..*entry
            })
            .collect()
    });
    Object {
        owner,
        acl,
        ..object.clone()
    }
}
