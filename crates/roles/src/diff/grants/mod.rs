//! Compares privileges on objects.
//!
//! Rules are resolved to objects before they are compared, so a wildcard and a named grant of the same privilege do not
//! conflict. Grants are reported by rule (a wildcard stays one change), revocations by object.

mod columns;
mod dependents;
mod grantor;
mod options;
mod surplus;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::view::View;
use crate::expand::{Desired, DesiredRole, GrantKey, Rule};
use crate::facts::{Facts, RoleId, ServerFacts};
use crate::model::{ObjectType, Privileges, Signature};
use crate::plan::{Change, Grant, GrantTarget, Mode, Plan, Revoke};

pub(super) struct Grants {
    pub(super) granted: Vec<Change>,
    pub(super) revoked: Vec<Change>,
    /// Runs after the revocations: revoking a privilege on a table revokes it on all of its columns, too.
    pub(super) columns: Vec<Change>,
}

/// The combined rules for a role on an object. A large database has some ten thousand of them.
#[derive(Default)]
struct Wants(HashMap<(u32, RoleId), Rule>);

impl Wants {
    fn get(&self, place: usize, role: RoleId) -> Rule {
        self.0.get(&Self::key(place, role)).copied().unwrap_or_default()
    }

    fn entry(&mut self, place: usize, role: RoleId) -> &mut Rule {
        self.0.entry(Self::key(place, role)).or_default()
    }

    fn key(place: usize, role: RoleId) -> (u32, RoleId) {
        (u32::try_from(place).unwrap_or(u32::MAX), role)
    }
}

pub(super) fn diff(desired: &Desired, facts: &Facts, view: &View<'_>, mode: Mode, plan: &mut Plan) -> Grants {
    let mut differ = Differ {
        desired,
        server: &facts.server,
        view,
        mode,
        ids: HashMap::new(),
        managed: HashMap::new(),
        dropped: HashSet::new(),
        wants: Wants::default(),
        columns: HashMap::new(),
        granted: vec![],
        column_grants: vec![],
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
    for name in &desired.scope.roles {
        if let (Some(id), Some(role)) = (facts.names.find(name), desired.roles.get(name)) {
            differ.managed.insert(id, (name, role));
        }
    }
    if mode == Mode::Authoritative {
        let retired = desired.retirements.iter().filter(|retired| retired.drop_owned);
        differ.dropped = retired
            .filter_map(|retired| facts.names.find(&retired.role))
            .collect();
    }
    for (key, rule) in &desired.grants {
        if key.columns.is_empty() {
            differ.rule(key, *rule);
        } else {
            differ.column_rule(key, *rule);
        }
    }
    for (key, privileges) in &desired.spared {
        differ.spare(key, *privileges);
    }
    // A mode that revokes nothing has nothing to restore.
    if mode == Mode::Additive {
        differ.warn_of_options();
    } else {
        differ.surplus();
        differ.restore_columns();
    }
    differ.sort_revoked();
    // Several roles can have the same lapsed grantor.
    differ.revoked.dedup();
    differ.name_owners();
    Grants {
        granted: differ.granted.into_iter().map(Change::Grant).collect(),
        revoked: differ.revoked.into_iter().map(Change::Revoke).collect(),
        columns: differ.column_grants.into_iter().map(Change::Grant).collect(),
    }
}

struct Differ<'a> {
    desired: &'a Desired,
    server: &'a ServerFacts,
    view: &'a View<'a>,
    mode: Mode,
    /// Ids of grantees that appear in an ACL.
    ids: HashMap<&'a str, RoleId>,
    /// Managed roles that appear in an ACL.
    managed: HashMap<RoleId, (&'a str, &'a DesiredRole)>,
    /// Roles of which DROP OWNED revokes everything, and with it what they have passed on.
    dropped: HashSet<RoleId>,
    wants: Wants,
    /// Column rules: (schema, relation, role) → column → rule.
    columns: HashMap<(&'a str, &'a str, &'a str), BTreeMap<&'a str, Rule>>,
    granted: Vec<Grant>,
    column_grants: Vec<Grant>,
    revoked: Vec<Revoke>,
    plan: &'a mut Plan,
}

impl<'a> Differ<'a> {
    fn rule(&mut self, key: &'a GrantKey, rule: Rule) {
        let id = self.ids.get(key.grantee.as_str()).copied();
        let meant = self.view.meant_by(key);
        let mut missing: BTreeMap<(Privileges, bool), Vec<GrantTarget>> = BTreeMap::new();
        for place in &meant {
            let Some(object) = self.view.object(*place) else {
                continue;
            };
            let (held, grantable) = id.map_or_else(Default::default, |id| object.held_by(id));
            // An earlier rule has already planned these.
            let asked = id.map(|id| self.wants.get(*place, id)).unwrap_or_default();
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
                        .push(GrantTarget::of(object));
                }
            }
            if let Some(id) = id {
                let want = self.wants.entry(*place, id);
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

    /// Keeps what a rule of another manifest grants.
    fn spare(&mut self, key: &'a GrantKey, privileges: Privileges) {
        if let (false, Some(schema), Some(name)) = (key.columns.is_empty(), &key.schema, &key.name) {
            let place = (schema.as_str(), name.as_str(), key.grantee.as_str());
            let Some(rules) = self.columns.get_mut(&place) else {
                return;
            };
            for column in &key.columns {
                if let Some(rule) = rules.get_mut(column.as_str()) {
                    rule.absent = rule.absent.without(privileges);
                }
            }
            return;
        }
        let Some(id) = self.ids.get(key.grantee.as_str()).copied() else {
            return;
        };
        for place in self.view.meant_by(key) {
            let want = self.wants.entry(place, id);
            want.absent = want.absent.without(privileges);
        }
    }

    /// The name of a routine as PostgreSQL prints it, independent of the manifest's spelling.
    fn shown_name(key: &GrantKey, targets: &[GrantTarget]) -> Option<String> {
        match (key.kind, targets) {
            (
                ObjectType::Function,
                [
                    GrantTarget {
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

    /// The object does not exist, or is a setting without privileges.
    fn unresolved(
        &mut self,
        key: &GrantKey,
        rule: Rule,
        missing: &mut BTreeMap<(Privileges, bool), Vec<GrantTarget>>,
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
            Some(Signature { name, arguments }) => GrantTarget {
                schema: key.schema.as_deref().map(Into::into),
                name: name.into(),
                types: arguments.map(Into::into),
            },
            None => GrantTarget {
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
            rules.grantable.add(rule.grantable);
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
            || GrantTarget {
                schema: Some(schema.into()),
                name: name.into(),
                types: None,
            },
            GrantTarget::of,
        );
        for ((privileges, with_grant_option), columns) in lacking {
            self.column_grants.push(Grant {
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
}
