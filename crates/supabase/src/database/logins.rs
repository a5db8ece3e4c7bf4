//! Compares roles with their desired state.
//!
//! An existing role is completed, never reduced: an attribute, a setting or a comment that somebody gave it stays.
//! Passwords are sent as verifiers, and only if the stored one does not match.

use rand::CryptoRng;
use secrecy::{ExposeSecret, SecretString};
use stanchion_kernel::Problem;
use stanchion_postgres::server::BOUND_CREATEROLE;
use stanchion_postgres::{Statement, scram};

use super::catalog::{Catalog, RoleFacts};
use super::mark::{self, Mark};
use super::privileges::may_give;
use super::request::{Note, Request};
use super::roles::{Attribute, Names, Role, TABLE};

/// The changes of roles.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) statements: Vec<Statement>,
    /// The roles that the administrator has to join.
    joins: Vec<String>,
    /// New verifiers, by role, for an administrator that cannot read them back.
    pub(super) verifiers: Vec<(String, SecretString)>,
    /// What a role lacks and the administrator cannot grant.
    pub(super) notes: Vec<Note>,
    /// Whether a role is created.
    pub(super) creates: bool,
    /// The logins that were created for an earlier database of the project, and the oids of those databases.
    pub(super) inherited: Vec<(String, u32)>,
}

/// Compares all roles.
pub(super) fn changes(
    catalog: &Catalog,
    request: &Request,
    names: &Names,
    random: &mut dyn CryptoRng,
) -> Result<Changes, Problem> {
    let mut changes = Changes::default();
    for role in TABLE {
        let wanted = role.login.and_then(|login| request.passwords.get(&login));
        if role.always || wanted.is_some() {
            One {
                catalog,
                request,
                role,
                name: names.role(role),
                password: wanted,
            }
            .compare(&mut changes, random)?;
        }
    }
    let joins = std::mem::take(&mut changes.joins);
    changes.statements.extend(join(&joins));
    Ok(changes)
}

/// An administrator without superuser must be a member of a role to reassign to it or to create in its name. All
/// memberships in one statement: after each change the server recomputes the administrator's memberships, which may be
/// thousands.
fn join(roles: &[String]) -> Option<Statement> {
    let (first, others) = roles.split_first()?;
    let first = Statement::new("GRANT ").ident(first);
    let all = others
        .iter()
        .fold(first, |grant, role| grant.sql(", ").ident(role));
    Some(all.sql(" TO CURRENT_USER"))
}

/// One role.
struct One<'a> {
    catalog: &'a Catalog,
    request: &'a Request,
    role: &'a Role,
    name: String,
    /// The password, if a service logs in as the role.
    password: Option<&'a SecretString>,
}

impl One<'_> {
    fn compare(&self, changes: &mut Changes, random: &mut dyn CryptoRng) -> Result<(), Problem> {
        let (before, joined) = (changes.statements.len(), changes.joins.len());
        match self.catalog.roles.get(&self.name) {
            None => self.create(changes, random),
            Some(facts) => self.complete(facts, changes, random)?,
        }
        if (changes.statements.len(), changes.joins.len()) > (before, joined)
            && self.catalog.roles.contains_key(&self.name)
            && !self.may_manage()
        {
            let mut wanted = changes.statements.split_off(before);
            wanted.extend(join(&changes.joins.split_off(joined)));
            let wanted: Vec<_> = wanted.iter().map(ToString::to_string).collect();
            let message = format!(
                "role {:?} exists already, and {:?} may not change it; as a superuser, or as a role that holds it WITH ADMIN OPTION: {}",
                self.name,
                self.catalog.server.role,
                wanted.join("; ")
            );
            return Err(Problem::human("RoleNotManageable", message));
        }
        Ok(())
    }

    fn may_manage(&self) -> bool {
        let powers = self.catalog.roles.get(&self.name).map(|facts| facts.powers);
        self.catalog.server.may_manage(powers.unwrap_or_default())
    }

    fn create(&self, changes: &mut Changes, random: &mut dyn CryptoRng) {
        let mut create = Statement::new("CREATE ROLE ")
            .ident(&self.name)
            .sql(if self.role.inherit {
                " INHERIT"
            } else {
                " NOINHERIT"
            });
        for attribute in self.attributes() {
            if may_give(self.catalog, *attribute) {
                create = create.sql(" ").sql(attribute.word());
            } else {
                changes.notes.push(self.lacking(*attribute));
            }
        }
        if let Some(password) = self.password {
            create = create
                .sql(" LOGIN PASSWORD ")
                .secret(&self.verifier(password, changes, random));
        }
        changes.statements.push(create);
        changes.creates = true;
        self.mark("", true, changes);
        self.join(changes);
    }

    fn complete(
        &self,
        facts: &RoleFacts,
        changes: &mut Changes,
        random: &mut dyn CryptoRng,
    ) -> Result<(), Problem> {
        if self.role.login.is_some() && (facts.superuser || self.name == self.catalog.server.role) {
            return Err(self.not_for_a_service(facts));
        }
        // PostgreSQL's own role, or upstream's superuser: it is not changed.
        if facts.superuser {
            return Ok(());
        }
        let missing = self.attributes().filter(|attribute| !has(facts, **attribute));
        let (given, lacking): (Vec<&Attribute>, Vec<&Attribute>) =
            missing.partition(|attribute| may_give(self.catalog, **attribute));
        changes
            .notes
            .extend(lacking.iter().map(|attribute| self.lacking(**attribute)));
        let excess = self.has_too_much(facts);
        let log_in = self.password.is_some() && !facts.login;
        let new_password = self.password.filter(|password| !self.is_set(password));
        if log_in || new_password.is_some() || !given.is_empty() || excess {
            let mut alter = Statement::new("ALTER ROLE ").ident(&self.name);
            for attribute in given {
                alter = alter.sql(" ").sql(attribute.word());
            }
            alter = alter.when(excess, |alter| alter.sql(" NOCREATEROLE"));
            alter = alter.when(log_in, |alter| alter.sql(" LOGIN"));
            if let Some(password) = new_password {
                alter = alter
                    .sql(" PASSWORD ")
                    .secret(&self.verifier(password, changes, random));
            }
            changes.statements.push(alter);
        }
        let (_, mark) = mark::split(&facts.comment);
        let created =
            mark.filter(|mark| mark.proves_creation(&self.name, &self.request.project, &self.request.key));
        self.mark(&facts.comment, created.is_some(), changes);
        let earlier = created.map(|mark| mark.database_oid);
        let earlier = earlier.filter(|oid| *oid != self.catalog.database.oid);
        changes
            .inherited
            .extend(earlier.map(|oid| (self.name.clone(), oid)));
        if !self.catalog.server.may_act_as(facts.powers) {
            self.join(changes);
        }
        Ok(())
    }

    /// Its desired attributes. Below 16 CREATEROLE is power over every role that is not a superuser, and over programs
    /// on the server: no login gets it.
    fn attributes(&self) -> impl Iterator<Item = &'static Attribute> + use<> {
        let unbound = self.is_unbound();
        let attributes = self.role.attributes.iter();
        attributes.filter(move |attribute| !(unbound && **attribute == Attribute::CreateRole))
    }

    fn is_unbound(&self) -> bool {
        self.role.login.is_some() && self.catalog.server.version < BOUND_CREATEROLE
    }

    /// Whether an earlier version of the operator, or upstream's image, gave the role CREATEROLE. It is the only
    /// attribute that is ever removed.
    fn has_too_much(&self, facts: &RoleFacts) -> bool {
        self.is_unbound() && facts.create_role && self.role.attributes.contains(&Attribute::CreateRole)
    }

    /// A service must not log in as a superuser, nor as the administrator, whose password the operator must not change.
    fn not_for_a_service(&self, facts: &RoleFacts) -> Problem {
        let name = &self.name;
        let (reason, what) = if facts.superuser {
            ("RoleIsSuperuser", "is a superuser")
        } else {
            (
                "RoleIsAdministrator",
                "is the administrator of the database's Secret",
            )
        };
        let message = format!(
            "role {name:?} {what}, but a service of the project would log in as it: \
             name another administrator in the Secret, or rename the role"
        );
        Problem::human(reason, message)
    }

    /// Marks the login as this project's. Shared roles have no mark.
    fn mark(&self, comment: &str, created: bool, changes: &mut Changes) {
        let oid = self.catalog.database.oid;
        let mark = Mark::new(&self.request.project, oid, &self.name, created, &self.request.key);
        let (text, current) = mark::split(comment);
        if self.role.login.is_some() && current.as_ref() != Some(&mark) {
            let comment = Statement::new("COMMENT ON ROLE ").ident(&self.name).sql(" IS ");
            changes.statements.push(comment.literal(&mark::join(text, &mark)));
        }
    }

    fn join(&self, changes: &mut Changes) {
        if !self.catalog.server.attributes.superuser {
            changes.joins.push(self.name.clone());
        }
    }

    fn is_set(&self, password: &SecretString) -> bool {
        let stored = self.catalog.verifiers.get(&self.name);
        stored.is_some_and(|stored| {
            self.catalog.proven
                || scram::Rounds::default().matches(password, stored.expose_secret()) == Some(true)
        })
    }

    fn verifier(
        &self,
        password: &SecretString,
        changes: &mut Changes,
        random: &mut dyn CryptoRng,
    ) -> SecretString {
        let verifier = scram::verifier(password, &scram::salt(random));
        changes.verifiers.push((self.name.clone(), verifier.clone()));
        verifier
    }

    fn lacking(&self, attribute: Attribute) -> Note {
        let (name, word) = (&self.name, attribute.word());
        Note {
            about: format!("role {name}"),
            message: format!(
                "it lacks {word}, so {}; as a superuser: ALTER ROLE \"{name}\" {word}",
                self.role.purpose
            ),
        }
    }
}

fn has(facts: &RoleFacts, attribute: Attribute) -> bool {
    match attribute {
        Attribute::CreateDb => facts.create_db,
        Attribute::CreateRole => facts.create_role,
        Attribute::Replication => facts.replication,
        Attribute::BypassRls => facts.bypass_rls,
    }
}
