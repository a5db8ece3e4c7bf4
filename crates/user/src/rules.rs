//! What a server opens to the objects of a namespace, in addition to what they created themselves.
//!
//! A role or a database belongs to the object whose mark it carries, and so to that object's namespace; another
//! namespace gets nothing on it. These rules concern the rest: roles and databases without a mark.

#[cfg(test)]
mod tests;

use stanchion_api::instance::{Attribute, PostgresInstanceSpec};
use stanchion_api::user::Privilege;
use stanchion_kernel::Problem;
use stanchion_kernel::marks::Found;

use crate::server::Openings;
use crate::user::catalog::RoleRef;
use crate::user::catalog::databases::DatabaseFacts;
use crate::user::target::{DatabaseRequest, SchemaRequest};

/// Name prefixes of cloud providers' roles. Most of them have powers that no attribute shows.
const CLOUD: &[&str] = &["rds", "cloudsql", "alloydb", "azure", "neon_", "aiven"];
/// Roles of cloud providers that only allow a cloud identity to log in.
const CLOUD_LOGINS: &[&str] = &[
    "rds_iam",
    "cloudsqliamuser",
    "cloudsqliamserviceaccount",
    "azure_ad_user",
];
/// The database of the server itself.
const OF_THE_SERVER: &str = "postgres";

/// The relation of an object's namespace to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The instance's own namespace.
    Home,
    /// Another namespace that the instance allows.
    Guest,
    /// Any namespace, at the operator's default server.
    Default,
}

/// What a server opens to the objects of one namespace.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The objects' namespace.
    pub namespace: String,
    /// The relation of the namespace to the server.
    pub side: Side,
    /// Powerful attributes that are allowed.
    pub attributes: Vec<Attribute>,
    databases: Vec<(Vec<String>, Option<Vec<Privilege>>)>,
    roles: Vec<String>,
    adoption: Vec<String>,
    extensions: Vec<String>,
    parameters: Vec<String>,
}

/// The owner of a role or database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This namespace.
    Ours,
    /// Another namespace.
    Theirs,
    /// No object created it.
    Nobodys,
}

impl Rules {
    /// The rules of the operator's default server.
    pub fn of_default(namespace: &str, openings: &Openings) -> Self {
        let Openings {
            databases,
            roles,
            adoption,
            extensions,
            parameters,
        } = openings.clone();
        Self {
            namespace: namespace.to_owned(),
            side: Side::Default,
            attributes: Vec::new(),
            databases: vec![(databases, None)],
            roles,
            adoption,
            extensions,
            parameters,
        }
    }

    /// The rules of an instance whose namespace is `home`.
    pub fn of_instance(namespace: &str, home: &str, spec: &PostgresInstanceSpec) -> Self {
        let here = |namespaces: &[String]| {
            namespaces.is_empty() || namespaces.iter().any(|name| is_like(name, namespace))
        };
        let databases = spec.databases.iter().filter(|open| here(&open.namespaces));
        let roles = spec.roles.iter().filter(|open| here(&open.namespaces));
        let adoption = spec.adoption.iter().filter(|open| here(&open.namespaces));
        Self {
            namespace: namespace.to_owned(),
            side: if namespace == home {
                Side::Home
            } else {
                Side::Guest
            },
            attributes: spec.allowed_attributes.clone(),
            databases: databases
                .map(|open| (open.names.clone(), Some(open.privileges.clone())))
                .collect(),
            roles: roles.flat_map(|open| open.names.clone()).collect(),
            adoption: adoption.flat_map(|open| open.roles.clone()).collect(),
            extensions: spec.extensions.clone(),
            parameters: spec.parameters.clone(),
        }
    }

    /// The owner of something with this mark.
    pub fn whose(&self, mark: Option<&Found>) -> Whose {
        match mark {
            Some(found) if found.is_of(&self.namespace) => Whose::Ours,
            Some(_) => Whose::Theirs,
            None => Whose::Nobodys,
        }
    }

    /// The owner of a database: by its own mark, or else by that of its owner.
    pub fn whose_database(&self, facts: &DatabaseFacts) -> Whose {
        self.whose(facts.mark.as_ref().or(facts.owner_mark.as_ref()))
    }

    /// Whether a role without a mark may be adopted.
    pub fn adopts(&self, role: &str) -> bool {
        is_among(&self.adoption, role) && !is_closed(role)
    }

    /// Whether an extension may be created although it is not trusted.
    pub fn opens_extension(&self, name: &str) -> bool {
        is_among(&self.extensions, name) || self.is_superuser_allowed()
    }

    /// Whether a parameter may be set although not every user may set it.
    pub fn opens_parameter(&self, name: &str) -> bool {
        is_among(&self.parameters, name) || self.is_superuser_allowed()
    }

    fn is_superuser_allowed(&self) -> bool {
        self.attributes.contains(&Attribute::Superuser)
    }

    /// Whether an object may use a role, as a group or as the new owner of its objects.
    pub fn check_role(&self, field: &str, name: &str, role: &RoleRef) -> Result<(), Problem> {
        match self.whose(role.mark.as_ref()) {
            Whose::Ours => Ok(()),
            Whose::Theirs => Err(no_role(
                field,
                name,
                "belongs to an object of another namespace",
                "",
            )),
            Whose::Nobodys if is_closed(name) => {
                if self.roles.iter().any(|open| open == name)
                    || CLOUD_LOGINS.contains(&name)
                    || self.is_superuser_allowed()
                {
                    return Ok(());
                }
                let what = "is a role of the server or of its provider";
                Err(no_role(field, name, what, "its exact name to "))
            }
            Whose::Nobodys if self.side == Side::Home || is_among(&self.roles, name) => Ok(()),
            Whose::Nobodys => Err(no_role(
                field,
                name,
                "was not created by an object of this namespace",
                "it to ",
            )),
        }
    }

    /// Whether default privileges may be changed for future objects of a role. Within an open database, that is allowed
    /// for every role without another namespace's mark.
    pub fn check_default_owner(&self, name: &str, role: &RoleRef) -> Result<(), Problem> {
        let field = "defaultPrivilegesForRoles";
        match self.whose(role.mark.as_ref()) {
            Whose::Nobodys if is_closed(name) => self.check_role(field, name, role),
            Whose::Ours | Whose::Nobodys => Ok(()),
            Whose::Theirs => Err(no_role(
                field,
                name,
                "belongs to an object of another namespace",
                "",
            )),
        }
    }

    /// Whether an object may have these privileges in an existing database.
    pub fn check_database(
        &self,
        name: &str,
        request: &DatabaseRequest,
        facts: &DatabaseFacts,
    ) -> Result<(), Problem> {
        match self.whose_database(facts) {
            Whose::Ours => return Ok(()),
            Whose::Theirs => {
                let what = "belongs to an object of another namespace";
                return Err(no_database(name, what, "choose another database"));
            }
            Whose::Nobodys => {}
        }
        if facts.template {
            return Err(no_database(name, "is a template", "choose another database"));
        }
        if name == OF_THE_SERVER && (self.side != Side::Home || request.owner) {
            let what = "belongs to the server itself";
            return Err(no_database(name, what, "choose another database"));
        }
        if self.side == Side::Home {
            return Ok(());
        }
        if request.revoke_public {
            let what = "was not created by an object of this namespace, so PUBLIC keeps its privileges there";
            let advice = "remove createDatabase.revokePublic, or use createDatabase for a database that does not exist";
            return Err(no_database(name, what, advice));
        }
        if request.owner {
            let what = "was not created by an object of this namespace, so no role of this namespace becomes its owner";
            return Err(no_database(
                name,
                what,
                "remove owner, or use createDatabase for a database that does not exist",
            ));
        }
        let open: Vec<&Option<Vec<Privilege>>> = self
            .databases
            .iter()
            .filter(|(names, _)| is_among(names, name))
            .map(|(_, most)| most)
            .collect();
        if open.iter().any(|most| most.is_none()) {
            return Ok(());
        }
        let most: Vec<Privilege> = open.into_iter().flatten().flatten().copied().collect();
        let advice = match self.side {
            Side::Default => "the operator's --postgres-databases must name it",
            Side::Home | Side::Guest => "the instance's spec.databases must open it",
        };
        if most.is_empty() {
            return Err(no_database(name, "is not open to this namespace", advice));
        }
        match more_than(&most, request) {
            None => Ok(()),
            Some(word) => Err(no_database(
                name,
                &format!("is not open to this namespace for {word}"),
                advice,
            )),
        }
    }

    /// Whether a database may be copied.
    pub fn check_template(&self, name: &str, facts: &DatabaseFacts) -> Result<(), Problem> {
        match self.whose_database(facts) {
            Whose::Ours => Ok(()),
            Whose::Nobodys if facts.template || self.side == Side::Home => Ok(()),
            Whose::Theirs | Whose::Nobodys => {
                let what = "cannot be the template: no object of this namespace created it, and it is no template of the server";
                Err(no_database(name, what, "choose another createDatabase.template"))
            }
        }
    }
}

/// The first requested privilege that goes beyond these.
fn more_than(most: &[Privilege], request: &DatabaseRequest) -> Option<String> {
    let mut open = DatabaseRequest::default();
    open.schemas.insert("public".into(), SchemaRequest::default());
    open.add(most);
    let inside = open.schemas.get("public").cloned().unwrap_or_default();
    let words = request.privileges.difference(&open.privileges);
    let schemas = request.schemas.iter().flat_map(|(name, schema)| {
        let parts = [
            (&schema.schema, &inside.schema),
            (&schema.tables, &inside.tables),
            (&schema.sequences, &inside.sequences),
            (&schema.functions, &inside.functions),
        ];
        parts
            .into_iter()
            .flat_map(|(asked, open)| asked.difference(open))
            .map(move |word| format!("{word} in schema {name}"))
            .collect::<Vec<_>>()
    });
    let makes = !request.extensions.is_empty() || request.schemas.values().any(|schema| schema.create);
    let makes = (makes && !open.privileges.contains("CREATE")).then(|| "CREATE".to_owned());
    words
        .map(|word| (*word).to_owned())
        .chain(schemas)
        .chain(makes)
        .next()
}

/// Whether a role must be opened by its exact name.
fn is_closed(name: &str) -> bool {
    name.starts_with("pg_") || CLOUD.iter().any(|provider| name.starts_with(provider))
}

/// Whether one of the patterns stands for the name.
fn is_among(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| is_like(pattern, name))
}

/// `*` stands for any characters. Looks at each character of the pattern once for each of the name, at most.
pub(crate) fn is_like(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut open = false;
    let mut last = "";
    for part in parts {
        if let Some(found) = rest.find(last).filter(|_| open) {
            rest = rest.get(found + last.len()..).unwrap_or_default();
        } else if open {
            return false;
        }
        (open, last) = (true, part);
    }
    if open {
        rest.ends_with(last)
    } else {
        rest.is_empty()
    }
}

fn no_role(field: &str, name: &str, what: &str, open: &str) -> Problem {
    let advice = if open.is_empty() {
        "choose another role".to_owned()
    } else {
        format!(
            "choose another role, or ask an administrator to add {open}the instance's spec.roles (for the operator's \
             default server, --postgres-roles)"
        )
    };
    Problem::human(
        "RoleNotAllowed",
        format!("{field}: role {name:?} {what}; {advice}"),
    )
}

fn no_database(name: &str, what: &str, advice: &str) -> Problem {
    Problem::human(
        "DatabaseNotAllowed",
        format!("database {name:?} {what}; {advice}"),
    )
}
