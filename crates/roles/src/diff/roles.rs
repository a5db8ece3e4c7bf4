//! Compares roles, their attributes, comments and passwords.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use stanchion_postgres::scram;

use crate::expand::Desired;
use crate::facts::{Facts, RoleFacts};
use crate::model::Attribute;
use crate::plan::{Blocker, Change, Check, Password, Plan};

pub(super) struct Roles {
    pub(super) created: Vec<Change>,
    pub(super) altered: Vec<Change>,
    pub(super) passwords: Vec<Change>,
}

pub(super) fn diff(
    desired: &Desired,
    facts: &Facts,
    passwords: &BTreeMap<String, Password>,
    plan: &mut Plan,
) -> Roles {
    let mut roles = Roles {
        created: vec![],
        altered: vec![],
        passwords: vec![],
    };
    let mut rounds = scram::Rounds::default();
    for (name, role) in &desired.roles {
        let existing = facts.roles.get(name);
        let password = passwords
            .get(name)
            .filter(|_| !role.external)
            .filter(|password| !existing.is_some_and(|role| has(role, &password.text, &mut rounds)));
        let set_password = password.map(|password| Change::SetPassword {
            name: name.clone(),
            password: password.clone(),
        });
        match existing {
            None if role.external => plan.warnings.push(format!(
                "role \"{name}\" is declared external and does not exist: what refers to it will fail"
            )),
            None => {
                roles.created.push(Change::CreateRole {
                    name: name.clone(),
                    state: role.state.clone(),
                });
                roles.created.extend(set_password);
                continue;
            }
            Some(existing) if !role.external => {
                let attributes = existing.state.changes_to(&role.state);
                protect(name, &attributes, facts, plan);
                if !attributes.is_empty() {
                    roles.altered.push(Change::AlterRole {
                        name: name.clone(),
                        attributes,
                    });
                }
                if existing.state.comment != role.state.comment {
                    let comment = role.state.comment.clone();
                    roles.altered.push(Change::SetComment {
                        name: name.clone(),
                        comment,
                    });
                }
            }
            Some(_) => {}
        }
        roles.passwords.extend(set_password);
    }
    roles
}

/// Whether the role already has this password, as far as the stored verifier shows.
fn has(role: &RoleFacts, wanted: &SecretString, rounds: &mut scram::Rounds) -> bool {
    role.verifier
        .as_ref()
        .is_some_and(|stored| match scram::encoding(wanted) {
            scram::Encoding::Clear => rounds.matches(wanted, stored.expose_secret()) == Some(true),
            // A verifier is stored unchanged.
            _ => stored.expose_secret() == wanted.expose_secret(),
        })
}

/// Blocks changes that would take the executor's own permissions away.
fn protect(name: &str, attributes: &[Attribute], facts: &Facts, plan: &mut Plan) {
    let lost = attributes.iter().find_map(|attribute| match attribute {
        Attribute::Superuser(false) => Some("SUPERUSER"),
        Attribute::Login(false) => Some("LOGIN"),
        Attribute::Createrole(false) if !facts.server.superuser => Some("CREATEROLE"),
        _ => None,
    });
    if let Some(attribute) = lost.filter(|_| name == facts.server.user) {
        plan.blockers.push(Blocker {
            check: Check::ExecutorAuthority,
            code: "executor_loses_attribute",
            role: Some(name.to_owned()),
            message: format!(
                "the manifest would take {attribute} from \"{name}\", the role that applies it; declare the \
                 attribute, or the role as `external: true`"
            ),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::DesiredRole;

    /// Verifiers of `pencil`, of 270,000 iterations and of the usual 4096.
    const COSTLY: &str = "SCRAM-SHA-256$270000:c2FsdA==$SlZLLechoLUpqVixmJRBqua3cHTO4R1U30FlsLsbp24=:JrWdo9lhqHwaJ15VRTjndJi5g5KWPqpwMmevMFTXlbU=";
    const USUAL: &str = "SCRAM-SHA-256$4096:c2FsdA==$u+iLs9qG4xpz8n4iBFJlze/fVOjP2jhqQIXx/NAiFSQ=:elQh4wT48epeZpwXBxlihIdim+BEkjp3sUAFd/ICyyI=";

    #[test]
    fn a_costly_verifier_is_replaced_once_and_costs_no_other_role() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let desired = Desired {
            roles: names.clone().map(|name| (name, DesiredRole::default())).into(),
            ..Desired::default()
        };
        let password = Password::new("pencil".into(), &mut rand::rng());
        let passwords: BTreeMap<_, _> = names.clone().map(|name| (name, password.clone())).into();
        let set = |stored: [&str; 3]| {
            let mut facts = Facts::default();
            facts.roles.extend(names.iter().zip(stored).map(|(name, stored)| {
                let role = RoleFacts {
                    oid: 1,
                    state: DesiredRole::default().state,
                    verifier: Some(stored.into()),
                };
                (name.clone(), role)
            }));
            let roles = diff(&desired, &facts, &passwords, &mut Plan::default());
            let name = |change: &Change| match change {
                Change::SetPassword { name, .. } => name.clone(),
                other => panic!("{other:?}"),
            };
            roles.passwords.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(set([COSTLY, USUAL, USUAL]), ["a"]);
        assert_eq!(set([USUAL, USUAL, USUAL]), [] as [String; 0]);
        assert_eq!(set([USUAL, USUAL, COSTLY]), ["c"]);
    }
}
