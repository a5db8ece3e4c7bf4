//! The state after roles and schemas are changed, which grants are compared with.
//!
//! When the owner of a schema changes, its ACL changes to the new owner, and a new schema has no ACL. A comparison with
//! the state before would grant what the transfer gives, or miss what it revokes.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::expand::{Desired, GrantKey, is_excepted};
use crate::facts::{AclEntry, Facts, Names, Object, RoleId};
use crate::model::{ObjectType, Signature};
use crate::plan::{GrantTarget, Mode};

pub(super) struct View<'a> {
    /// Objects that change before grants are made, by their index in the facts, followed by new ones.
    changed: HashMap<usize, Object>,
    facts: &'a Facts,
    count: usize,
    pub(super) names: Names,
    /// Indexes of managed objects, sorted by schema and kind. Sorted lists need much less memory than maps with the names as
    /// keys.
    by_kind: Vec<usize>,
    /// Indexes of objects, sorted by schema and name; routines and relations can share one.
    by_name: Vec<usize>,
    /// Indexes of columns with privileges, sorted by the relation's schema and name.
    columns: Vec<usize>,
}

impl<'a> View<'a> {
    pub(super) fn new(desired: &Desired, facts: &'a Facts, mode: Mode) -> Self {
        let mut view = Self {
            changed: HashMap::new(),
            facts,
            count: facts.objects.len(),
            names: facts.names.clone(),
            by_kind: Vec::new(),
            by_name: Vec::new(),
            columns: Vec::new(),
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
        let sorted = |is_meant: fn(&Object) -> bool, order: fn(&Object, &Object) -> Ordering| {
            let mut found: Vec<(usize, &Object)> =
                self.objects().filter(|(_, object)| is_meant(object)).collect();
            found.sort_by(|(_, one), (_, other)| order(one, other));
            // By reference: by value, the list would keep the room of the pairs.
            found.iter().map(|(place, _)| *place).collect::<Vec<_>>()
        };
        let by_name = |one: &Object, other: &Object| name_of(one).cmp(&name_of(other));
        let by_kind = |one: &Object, other: &Object| kind_of(one).cmp(&kind_of(other));
        (self.by_kind, self.by_name, self.columns) = (
            sorted(|object| object.column.is_none() && object.in_scope, by_kind),
            sorted(|object| object.column.is_none(), by_name),
            sorted(|object| object.column.is_some(), by_name),
        );
    }

    /// The part of a sorted list with this key.
    fn range<'v, K: Ord>(
        &'v self,
        sorted: &'v [usize],
        key: &K,
        of: impl Fn(&'v Object) -> K,
    ) -> &'v [usize] {
        let compared = |place: &usize| {
            self.object(*place)
                .map_or(Ordering::Less, |object| of(object).cmp(key))
        };
        let start = sorted.partition_point(|place| compared(place) == Ordering::Less);
        let rest = sorted.get(start..).unwrap_or_default();
        let end = rest.partition_point(|place| compared(place) == Ordering::Equal);
        rest.get(..end).unwrap_or_default()
    }

    fn named<'v>(&'v self, schema: Option<&'v str>, name: &'v str) -> &'v [usize] {
        self.range(&self.by_name, &(schema, name), name_of)
    }

    fn of_kind<'v>(&'v self, schema: Option<&'v str>, kind: ObjectType) -> &'v [usize] {
        self.range(&self.by_kind, &(schema, kind), kind_of)
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
        self.named(None, name)
            .iter()
            .filter_map(|place| self.object(*place))
            .find(|object| object.kind == ObjectType::Schema)
    }

    /// The existing objects that a rule matches.
    pub(super) fn meant_by(&self, key: &GrantKey) -> Vec<usize> {
        let schema = key.schema.as_deref();
        let Some(name) = &key.name else {
            return self.of_kind(None, ObjectType::Database).to_vec();
        };
        if key.is_wildcard() {
            return self
                .of_kind(schema, key.kind)
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
        self.named(schema, &bare)
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
    pub(super) fn find(&self, target: &GrantTarget, kind: ObjectType) -> Option<&Object> {
        self.named(target.schema.as_deref(), &target.name)
            .iter()
            .filter_map(|place| self.object(*place))
            .find(|object| {
                object.kind.same_namespace(kind)
                    && target.types.as_ref().is_none_or(|types| **types == *object.types)
            })
    }

    /// The columns of a relation that have privileges.
    pub(super) fn columns<'v>(&'v self, of: &'v Object) -> impl Iterator<Item = &'v Object> {
        self.range(&self.columns, &name_of(of), name_of)
            .iter()
            .filter_map(|place| self.object(*place))
            .filter(|_| of.kind.is_relation())
    }

    /// The relation of a column, if it has privileges or is managed.
    pub(super) fn relation(&self, column: &Object) -> Option<&Object> {
        let named = self.named(column.schema.as_deref(), &column.name).iter();
        named
            .filter_map(|place| self.object(*place))
            .find(|object| object.kind.is_relation())
    }

    /// The column of a statement, if it has privileges.
    pub(super) fn column_of(&self, target: &GrantTarget, column: &str) -> Option<&Object> {
        let relation = (target.schema.as_deref(), &*target.name);
        self.range(&self.columns, &relation, name_of)
            .iter()
            .filter_map(|place| self.object(*place))
            .find(|object| object.column.as_deref() == Some(column))
    }

    /// A column of a relation, if it has privileges.
    pub(super) fn column<'v>(&'v self, of: &'v Object, column: &str) -> Option<&'v Object> {
        self.columns(of)
            .find(|object| object.column.as_deref() == Some(column))
    }
}

fn name_of(object: &Object) -> (Option<&str>, &str) {
    (object.schema.as_deref(), &object.name)
}

fn kind_of(object: &Object) -> (Option<&str>, ObjectType) {
    (object.schema.as_deref(), object.kind)
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
