//! Privileges on objects.
//!
//! Rules are compared object by object, whatever selector they came from, so a wildcard and a named grant of the
//! same privilege do not fight. What is granted is reported by rule (a wildcard stays one change), what is
//! revoked by object.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::view::View;
use crate::expand::{Desired, DesiredRole, GrantKey, Rule};
use crate::facts::{AclEntry, Facts, Object, RoleId};
use crate::model::{ObjectType, PUBLIC, Privileges, Signature};
use crate::plan::{Change, Grant, Mode, Plan, Revoke, Target};

pub(super) struct Grants {
    pub(super) granted: Vec<Change>,
    pub(super) revoked: Vec<Change>,
}

/// What all rules together say of a role on an object.
type Wants = HashMap<(usize, RoleId), Rule>;

pub(super) fn diff(desired: &Desired, facts: &Facts, view: &View<'_>, mode: Mode, plan: &mut Plan) -> Grants {
    let mut differ = Differ {
        desired,
        view,
        mode,
        ids: HashMap::new(),
        wants: Wants::new(),
        columns: HashMap::new(),
        granted: vec![],
        revoked: vec![],
        plan,
    };
    for name in desired
        .roles
        .keys()
        .chain(desired.grants.keys().map(|key| &key.grantee))
    {
        if let Some(id) = facts.names.find(name) {
            differ.ids.insert(name, id);
        }
    }
    for (key, rule) in &desired.grants {
        if key.columns.is_empty() {
            differ.rule(key, *rule);
        } else {
            differ.column_rule(key, *rule);
        }
    }
    differ.surplus();
    differ.revoked.sort_by(|a, b| order(a).cmp(&order(b)));
    Grants {
        granted: differ.granted.into_iter().map(Change::Grant).collect(),
        revoked: differ.revoked.into_iter().map(Change::Revoke).collect(),
    }
}

/// By role, kind, schema and name. What was passed on is taken before what it was passed on from.
fn order(revoke: &Revoke) -> impl Ord + '_ {
    (
        revoke.cascade,
        &revoke.role,
        revoke.object_type,
        &revoke.schema,
        &revoke.name,
        &revoke.columns,
    )
}

struct Differ<'a> {
    desired: &'a Desired,
    view: &'a View<'a>,
    mode: Mode,
    /// Grantees that appear in an ACL.
    ids: HashMap<&'a str, RoleId>,
    wants: Wants,
    /// Column rules: (schema, relation, role) → column → rule.
    columns: HashMap<(&'a str, &'a str, &'a str), BTreeMap<&'a str, Rule>>,
    granted: Vec<Grant>,
    revoked: Vec<Revoke>,
    plan: &'a mut Plan,
}

impl<'a> Differ<'a> {
    fn rule(&mut self, key: &'a GrantKey, rule: Rule) {
        let id = self.ids.get(key.grantee.as_str()).copied();
        let meant = self.view.meant_by(key);
        let mut missing: BTreeMap<(Privileges, bool), Vec<Target>> = BTreeMap::new();
        for place in &meant {
            let Some(object) = self.view.object(*place) else {
                continue;
            };
            let (held, grantable) = id.map_or_else(Default::default, |id| object.held_by(id));
            // What an earlier rule has already asked for is on its way.
            let asked = id
                .and_then(|id| self.wants.get(&(*place, id)))
                .copied()
                .unwrap_or_default();
            let lacks_option = rule.grantable.without(grantable).without(asked.grantable);
            let lacks = rule
                .present
                .without(held)
                .without(asked.present)
                .without(lacks_option);
            for (privileges, option) in [(lacks, false), (lacks_option, true)] {
                if !privileges.is_empty() {
                    missing
                        .entry((privileges, option))
                        .or_default()
                        .push(Target::of(object));
                }
            }
            if let Some(id) = id {
                let want = self.wants.entry((*place, id)).or_default();
                want.present.add(rule.present);
                want.absent.add(rule.absent);
                want.grantable.add(rule.grantable);
                want.not_grantable.add(rule.not_grantable);
            }
        }
        if meant.is_empty() && !key.is_wildcard() {
            self.unresolved(key, rule, &mut missing);
        }
        for ((privileges, with_grant_option), targets) in missing {
            self.granted.push(Grant {
                role: key.grantee.clone(),
                privileges,
                object_type: key.kind,
                schema: key.schema.clone(),
                name: Self::shown_name(key, &targets),
                columns: vec![],
                with_grant_option,
                targets,
            });
        }
    }

    /// A routine is shown as PostgreSQL knows it, whatever spelling the manifest uses.
    fn shown_name(key: &GrantKey, targets: &[Target]) -> Option<String> {
        match (key.kind, targets) {
            (
                ObjectType::Function,
                [
                    Target {
                        name,
                        types: Some(types),
                        ..
                    },
                ],
            ) if !key.is_wildcard() => Some(format!("{name}({})", types.join(", "))),
            (ObjectType::Database, [target]) => Some(target.name.to_string()),
            _ => key.name.clone(),
        }
    }

    /// The object does not exist, or is a setting on which nobody holds anything yet.
    fn unresolved(
        &mut self,
        key: &GrantKey,
        rule: Rule,
        missing: &mut BTreeMap<(Privileges, bool), Vec<Target>>,
    ) {
        if rule.present.is_empty() {
            return;
        }
        if key.kind != ObjectType::Parameter && key.kind != ObjectType::Schema {
            let place: Vec<_> = [&key.schema, &key.name]
                .into_iter()
                .flatten()
                .map(|part| format!("\"{part}\""))
                .collect();
            self.plan.warnings.push(format!(
                "{} {} does not exist: granting on it will fail",
                key.kind,
                place.join(".")
            ));
        }
        let signature = (key.kind == ObjectType::Function)
            .then(|| key.name.as_deref().and_then(|name| Signature::parse(name).ok()))
            .flatten();
        let target = match signature {
            Some(Signature { name, arguments }) => Target {
                schema: key.schema.as_deref().map(Into::into),
                name: name.into(),
                types: arguments.map(Into::into),
            },
            None => Target {
                schema: key.schema.as_deref().map(Into::into),
                name: key.name.clone().unwrap_or_default().into(),
                types: None,
            },
        };
        let plain = rule.present.without(rule.grantable);
        for (privileges, option) in [(plain, false), (rule.grantable, true)] {
            if !privileges.is_empty() {
                missing
                    .entry((privileges, option))
                    .or_default()
                    .push(target.clone());
            }
        }
    }

    fn column_rule(&mut self, key: &'a GrantKey, rule: Rule) {
        let (Some(schema), Some(name)) = (key.schema.as_deref(), key.name.as_deref()) else {
            return;
        };
        let id = self.ids.get(key.grantee.as_str()).copied();
        let relation = self
            .view
            .meant_by(key)
            .first()
            .and_then(|place| self.view.object(*place));
        let mut lacking: BTreeMap<(Privileges, bool), Vec<String>> = BTreeMap::new();
        for column in &key.columns {
            let rules = self
                .columns
                .entry((schema, name, &key.grantee))
                .or_default()
                .entry(column)
                .or_default();
            rules.present.add(rule.present);
            rules.absent.add(rule.absent);
            rules.not_grantable.add(rule.not_grantable);
            let held = relation
                .and_then(|relation| self.view.column(relation, column))
                .zip(id);
            let (held, grantable) = held.map_or_else(Default::default, |(column, id)| column.held_by(id));
            let lacks_option = rule.grantable.without(grantable);
            let lacks = rule.present.without(held).without(lacks_option);
            for (privileges, option) in [(lacks, false), (lacks_option, true)] {
                if !privileges.is_empty() {
                    lacking
                        .entry((privileges, option))
                        .or_default()
                        .push(column.clone());
                }
            }
        }
        let target = relation.map_or_else(
            || Target {
                schema: Some(schema.into()),
                name: name.into(),
                types: None,
            },
            Target::of,
        );
        for ((privileges, with_grant_option), columns) in lacking {
            self.granted.push(Grant {
                role: key.grantee.clone(),
                privileges,
                object_type: key.kind,
                schema: key.schema.clone(),
                name: key.name.clone(),
                columns,
                with_grant_option,
                targets: vec![target.clone()],
            });
        }
    }

    /// What is held and not wanted.
    fn surplus(&mut self) {
        let view = self.view;
        let managed: HashMap<RoleId, (&str, &DesiredRole)> = self
            .desired
            .scope
            .roles
            .iter()
            .filter_map(|name| {
                Some((
                    *self.ids.get(name.as_str())?,
                    (name.as_str(), self.desired.roles.get(name)?),
                ))
            })
            .collect();
        for (place, object) in view.objects() {
            let in_scope = self.in_scope(object);
            if object.acl.is_none() {
                self.implicit(place, object);
            }
            for entry in object.acl.iter().flatten() {
                let want = self.want(place, object, entry.grantee);
                let held = entry.privileges;
                let role = managed
                    .get(&entry.grantee)
                    .filter(|_| entry.grantee != object.owner);
                let undeclared = match role {
                    Some((name, role)) => {
                        let owned = in_scope || self.has_column_rule(object, name);
                        let rest = held.without(want.present).without(want.absent);
                        if rest.is_empty() || (role.preserve_undeclared_grants && owned) {
                            Privileges::NONE
                        } else if owned || (role.exclusive && self.mode == Mode::Authoritative) {
                            rest
                        } else {
                            self.report(object, name, rest);
                            Privileges::NONE
                        }
                    }
                    None => Privileges::NONE,
                };
                let surplus = held.intersection(want.absent).union(undeclared);
                self.revoke(object, entry, surplus, false);
                let option = entry.grantable.intersection(want.not_grantable).without(surplus);
                self.revoke(object, entry, option, true);
            }
        }
    }

    /// Everybody's privileges on a new object are in no ACL, and can be taken all the same.
    fn implicit(&mut self, place: usize, object: &Object) {
        let want = self.want(place, object, RoleId::PUBLIC);
        let surplus = object.held_by(RoleId::PUBLIC).0.intersection(want.absent);
        let entry = AclEntry {
            grantee: RoleId::PUBLIC,
            grantor: object.owner,
            privileges: surplus,
            grantable: Privileges::NONE,
        };
        self.revoke(object, &entry, surplus, false);
    }

    fn want(&self, place: usize, object: &Object, grantee: RoleId) -> Rule {
        match (&object.column, &object.schema) {
            (Some(column), Some(schema)) => self
                .columns
                .get(&(&**schema, &*object.name, self.view.names.name(grantee)))
                .and_then(|rules| rules.get(&**column))
                .copied()
                .unwrap_or_default(),
            _ => self.wants.get(&(place, grantee)).copied().unwrap_or_default(),
        }
    }

    fn in_scope(&self, object: &Object) -> bool {
        let scope = &self.desired.scope;
        let bindings = |schema: &str| scope.schemas.get(schema).is_some_and(|facets| facets.bindings);
        match (object.kind, &object.schema) {
            _ if object.column.is_some() => false,
            (ObjectType::Database, _) => scope.database,
            (ObjectType::Schema, _) => bindings(&object.name),
            (_, Some(schema)) => bindings(schema),
            // Objects outside of schemas are managed for the roles that a rule names, which the rules see to.
            (_, None) => false,
        }
    }

    /// With one column of a relation under management, all of its columns are.
    fn has_column_rule(&self, object: &Object, role: &str) -> bool {
        object.column.is_some()
            && object
                .schema
                .as_ref()
                .is_some_and(|schema| self.columns.contains_key(&(&**schema, &*object.name, role)))
    }

    fn report(&mut self, object: &Object, role: &str, privileges: Privileges) {
        let place: Vec<_> = object
            .schema
            .iter()
            .map(|schema| &**schema)
            .chain([&*object.name])
            .collect();
        let column = object
            .column
            .as_ref()
            .map(|column| format!(" column \"{column}\" of"))
            .unwrap_or_default();
        self.plan.holdings.push(format!(
            "role \"{role}\" also holds {privileges} on{column} {} \"{}\", which the manifest does not manage",
            object.kind,
            place.join("\".\"")
        ));
    }

    fn revoke(&mut self, object: &Object, entry: &AclEntry, privileges: Privileges, grant_option_only: bool) {
        if privileges.is_empty() {
            return;
        }
        let cascade = self.keep_heirs(object, entry, privileges);
        let name = |id: RoleId| {
            if id == RoleId::PUBLIC {
                PUBLIC
            } else {
                self.view.names.name(id)
            }
        };
        self.revoked.push(Revoke {
            role: name(entry.grantee).to_owned(),
            privileges,
            object_type: object.kind,
            schema: object.schema.as_deref().map(str::to_owned),
            name: Some(object.display_name()),
            columns: object.column.iter().map(ToString::to_string).collect(),
            grantor: (entry.grantor != object.owner).then(|| name(entry.grantor).to_owned()),
            grant_option_only,
            cascade,
            target: Target::of(object),
        });
    }

    /// Whoever got a privilege from the one who loses it, and is not to lose it too, gets it from the owner.
    fn keep_heirs(&mut self, object: &Object, losing: &AclEntry, privileges: Privileges) -> bool {
        let passed_on = losing.grantable.intersection(privileges);
        let acl = object.acl.as_deref().unwrap_or_default();
        let mut givers = HashSet::from([losing.grantee]);
        let mut heirs: Vec<&AclEntry> = vec![];
        if passed_on.is_empty() {
            return false;
        }
        loop {
            let more: Vec<_> = acl
                .iter()
                .filter(|entry| {
                    givers.contains(&entry.grantor) && !entry.privileges.intersection(passed_on).is_empty()
                })
                .filter(|entry| !heirs.contains(entry))
                .collect();
            if more.is_empty() {
                break;
            }
            givers.extend(more.iter().map(|entry| entry.grantee));
            heirs.extend(more);
        }
        for heir in &heirs {
            let option = heir.grantable.intersection(passed_on);
            let plain = heir.privileges.intersection(passed_on).without(option);
            for (privileges, with_grant_option) in [(plain, false), (option, true)] {
                if !privileges.is_empty() {
                    self.granted.push(Grant {
                        role: self.view.names.name(heir.grantee).to_owned(),
                        privileges,
                        object_type: object.kind,
                        schema: object.schema.as_deref().map(str::to_owned),
                        name: Some(object.display_name()),
                        columns: object.column.iter().map(ToString::to_string).collect(),
                        with_grant_option,
                        targets: vec![Target::of(object)],
                    });
                }
            }
        }
        !heirs.is_empty()
    }
}
