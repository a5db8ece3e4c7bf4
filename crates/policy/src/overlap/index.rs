//! Finds what a policy says of a subject, by its names: policies with thousands of rules are compared with each other.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use stanchion_roles::expand::{GrantKey, Rule, is_excepted};
use stanchion_roles::model::ObjectType;

use super::Declared;

type Rules<'a> = Vec<(&'a GrantKey, Rule)>;
/// Grantee, kind, schema and bare name.
type Subject<'a> = (&'a str, ObjectType, Option<&'a str>, Cow<'a, str>);

/// The rules of a policy. It borrows all names.
pub(super) struct Index<'a> {
    pub(super) declared: Declared<'a>,
    /// Rules that name an object.
    named: HashMap<Subject<'a>, Rules<'a>>,
    /// Rules about all objects of a kind, by grantee, kind and schema.
    wildcards: HashMap<(&'a str, ObjectType, Option<&'a str>), Rules<'a>>,
    /// Grantee, schema and name of the relations of which a rule names columns.
    with_columns: HashSet<(&'a str, Option<&'a str>, Option<&'a str>)>,
    /// The owners that have global default privileges.
    pub(super) owners: HashSet<&'a str>,
}

impl<'a> Index<'a> {
    pub(super) fn of(declared: Declared<'a>) -> Self {
        let global = declared.desired.default_privileges.keys();
        let global = global.filter(|key| key.schema.is_none());
        let mut index = Self {
            declared,
            named: HashMap::new(),
            wildcards: HashMap::new(),
            with_columns: HashSet::new(),
            owners: global.map(|key| key.owner.as_str()).collect(),
        };
        for (key, rule) in &declared.desired.grants {
            let rules = if key.is_wildcard() {
                let place = (key.grantee.as_str(), key.kind, key.schema.as_deref());
                index.wildcards.entry(place).or_default()
            } else {
                index.named.entry(subject(key)).or_default()
            };
            rules.push((key, *rule));
            if !key.columns.is_empty() {
                index.with_columns.insert(relation(key));
            }
        }
        index
    }

    /// Whether a rule names columns of the relation.
    pub(super) fn names_columns_of(&self, key: &GrantKey) -> bool {
        self.with_columns.contains(&relation(key))
    }

    /// What the policy itself says about the subject of a rule: what it grants on all of it, and what it excludes on any part
    /// of it.
    pub(super) fn says(&self, key: &GrantKey) -> Rule {
        let mut says = Rule::default();
        let mut add = |(ours, rule): (&GrantKey, Rule)| {
            if includes(ours, key) {
                says.present.add(rule.present);
                says.grantable.add(rule.grantable);
            }
            if meets(ours, key) {
                says.absent.add(rule.absent);
                says.not_grantable.add(rule.not_grantable);
            }
        };
        let place = (key.grantee.as_str(), key.kind, key.schema.as_deref());
        self.wildcards
            .get(&place)
            .into_iter()
            .flatten()
            .copied()
            .for_each(&mut add);
        if key.is_wildcard() {
            self.in_place_of(key).for_each(add);
        } else {
            let named = self.named.get(&subject(key)).into_iter().flatten();
            named.copied().for_each(add);
        }
        says
    }

    /// The rules that name an object of the kind and the schema of a wildcard.
    fn in_place_of<'s>(&'s self, key: &'s GrantKey) -> impl Iterator<Item = (&'s GrantKey, Rule)> {
        let first = GrantKey {
            name: None,
            columns: BTreeSet::new(),
            except: BTreeSet::new(),
            ..key.clone()
        };
        let same = move |ours: &GrantKey| {
            (&ours.grantee, ours.kind, &ours.schema) == (&key.grantee, key.kind, &key.schema)
        };
        let rules = self.declared.desired.grants.range(first..);
        let rules = rules.map(|(ours, rule)| (ours, *rule));
        rules
            .take_while(move |(ours, _)| same(ours))
            .filter(|(ours, _)| !ours.is_wildcard())
    }
}

fn relation(key: &GrantKey) -> (&str, Option<&str>, Option<&str>) {
    (&key.grantee, key.schema.as_deref(), key.name.as_deref())
}

fn subject(key: &GrantKey) -> Subject<'_> {
    let mut kinds = ObjectType::ALL.into_iter();
    // One kind for all that share their names.
    let kind = kinds.find(|kind| kind.same_namespace(key.kind));
    (
        &key.grantee,
        kind.unwrap_or(key.kind),
        key.schema.as_deref(),
        bare(key),
    )
}

/// The name of an object in a rule, as far as it can be compared. A routine may be spelled in several ways, so its arguments
/// are not; names of settings are lower case.
fn bare(key: &GrantKey) -> Cow<'_, str> {
    let name = key.name.as_deref().unwrap_or_default();
    match key.kind {
        ObjectType::Function => name.split('(').next().unwrap_or_default().into(),
        ObjectType::Parameter => name.to_ascii_lowercase().into(),
        _ => name.into(),
    }
}

/// Whether a wildcard is about the object that another rule names.
fn is_about(wildcard: &GrantKey, named: &GrantKey) -> bool {
    wildcard.kind == named.kind
        && !(named.name.as_ref()).is_some_and(|name| is_excepted(&wildcard.except, name))
}

/// Whether a rule is about everything that another one of the same schema is about, as far as the names show. Privileges on
/// a relation are not those on its columns.
pub(super) fn includes(one: &GrantKey, other: &GrantKey) -> bool {
    let columns = one.columns.is_empty() == other.columns.is_empty()
        && other.columns.iter().all(|column| one.columns.contains(column));
    let objects = match (one.is_wildcard(), other.is_wildcard()) {
        (true, true) => one.kind == other.kind && one.except.iter().all(|name| other.except.contains(name)),
        (true, false) => is_about(one, other),
        (false, true) => false,
        (false, false) => bare(one) == bare(other),
    };
    columns && objects
}

/// Whether two rules of the same schema can be about the same object.
pub(super) fn meets(one: &GrantKey, other: &GrantKey) -> bool {
    let columns = if one.columns.is_empty() || other.columns.is_empty() {
        one.columns.is_empty() && other.columns.is_empty()
    } else {
        !one.columns.is_disjoint(&other.columns)
    };
    let objects = match (one.is_wildcard(), other.is_wildcard()) {
        (true, true) => one.kind == other.kind,
        (true, false) => is_about(one, other),
        (false, true) => is_about(other, one),
        (false, false) => bare(one) == bare(other),
    };
    columns && objects
}

#[cfg(test)]
mod tests {
    use stanchion_roles::expand::Desired;
    use stanchion_roles::model::{Privilege, Privileges};
    use stanchion_roles::plan::Mode;

    use super::*;

    /// Every rule is compared with the subject.
    fn found_by_all(declared: Declared<'_>, key: &GrantKey) -> (Rule, bool) {
        let mut says = Rule::default();
        let (mut names_columns, rules) = (false, declared.desired.grants.iter());
        for (ours, rule) in
            rules.filter(|(ours, _)| (&ours.grantee, &ours.schema) == (&key.grantee, &key.schema))
        {
            names_columns |= !ours.columns.is_empty() && ours.name == key.name;
            if ours.kind.same_namespace(key.kind) && includes(ours, key) {
                says.present.add(rule.present);
                says.grantable.add(rule.grantable);
            }
            if ours.kind.same_namespace(key.kind) && meets(ours, key) {
                says.absent.add(rule.absent);
                says.not_grantable.add(rule.not_grantable);
            }
        }
        (says, names_columns)
    }

    fn set(items: &[&str]) -> BTreeSet<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    const OBJECTS: &[(ObjectType, Option<&str>, &[&str])] = &[
        (ObjectType::Table, Some("s"), &["t", "u", "*"]),
        (ObjectType::Table, Some("z"), &["t"]),
        (ObjectType::View, Some("s"), &["t", "*"]),
        (
            ObjectType::Function,
            Some("s"),
            &["t", "t(integer)", "t (x)", "*"],
        ),
        (ObjectType::Parameter, None, &["Work_Mem", "work_mem"]),
        (ObjectType::Schema, None, &["s"]),
        (ObjectType::Database, None, &[]),
    ];
    /// Columns and exceptions.
    const PARTS: &[(&[&str], &[&str])] = &[(&[], &[]), (&["a"], &[]), (&["a", "b"], &[]), (&[], &["t"])];

    /// Rules that differ in one thing or another.
    fn keys() -> Vec<GrantKey> {
        let mut keys = Vec::new();
        for (kind, schema, names) in OBJECTS {
            let names = names.iter().map(|name| Some((*name).to_owned()));
            let database = (*kind == ObjectType::Database).then_some(None);
            for name in names.chain(database) {
                for (columns, except) in PARTS {
                    for grantee in ["r", "q"] {
                        keys.push(GrantKey {
                            grantee: grantee.to_owned(),
                            kind: *kind,
                            schema: schema.map(str::to_owned),
                            name: name.clone(),
                            columns: set(columns),
                            except: set(except),
                        });
                    }
                }
            }
        }
        keys
    }

    #[test]
    fn the_index_finds_what_a_comparison_with_every_rule_finds() {
        let keys = keys();
        let privileges = [
            Privilege::Select,
            Privilege::Insert,
            Privilege::Update,
            Privilege::Delete,
        ];
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        for _ in 0..300 {
            let mut desired = Desired::default();
            for _ in 0..random(12) {
                let mut any = || -> Privileges {
                    privileges
                        .get(random(privileges.len()))
                        .copied()
                        .into_iter()
                        .collect()
                };
                let rule = Rule {
                    present: any(),
                    absent: any(),
                    grantable: any(),
                    not_grantable: any(),
                };
                desired.grants.insert(keys[random(keys.len())].clone(), rule);
            }
            let declared = Declared {
                desired: &desired,
                mode: Mode::Authoritative,
            };
            let index = Index::of(declared);
            for key in &keys {
                let found = (index.says(key), index.names_columns_of(key));
                assert_eq!(found, found_by_all(declared, key), "{key:?} {:?}", desired.grants);
            }
        }
    }
}
