//! One change at a time.

use secrecy::SecretString;
use stanchion_postgres::scram::NoRandomness;
use stanchion_postgres::{Doing, Statement};

use super::types;
use crate::guc;
use crate::model::{Attribute, ObjectType, PUBLIC, Privileges, RoleState};
use crate::plan::{Change, DefaultPrivilege, Plan, Revoke, Target};

/// How passwords go into statements.
pub(super) struct Secrets<'a> {
    pub(super) verifier: &'a dyn Fn(&SecretString) -> Result<SecretString, NoRandomness>,
    /// The verifier is a blank, and is shown.
    pub(super) shown: bool,
}

/// The statements of one change.
#[allow(clippy::too_many_lines)] // A table: one arm a change.
pub(super) fn render(
    change: &Change,
    plan: &Plan,
    secrets: &Secrets<'_>,
) -> Result<Vec<Statement>, NoRandomness> {
    Ok(match change {
        Change::CreateRole { name, state } => create_role(name, state),
        Change::AlterRole { name, attributes } => alter_role(name, attributes),
        Change::SetComment { name, comment } => vec![comment_on(name, comment.as_deref())],
        Change::SetPassword { name, password } => {
            let verifier = (secrets.verifier)(&password.0)?;
            let statement = Statement::new("ALTER ROLE ").ident(name).sql(" PASSWORD ");
            vec![if secrets.shown {
                statement.sql("'[REDACTED]'")
            } else {
                statement.secret(&verifier)
            }]
        }
        Change::CreateSchema { name, owner } => {
            let statement = Statement::new("CREATE SCHEMA ").ident(name);
            vec![match owner {
                Some(owner) => statement.sql(" AUTHORIZATION ").ident(owner),
                None => statement,
            }]
        }
        Change::AlterSchemaOwner { name, owner } => {
            vec![
                Statement::new("ALTER SCHEMA ")
                    .ident(name)
                    .sql(" OWNER TO ")
                    .ident(owner),
            ]
        }
        Change::EnsureSchemaOwnerPrivileges {
            name,
            owner,
            privileges,
        } => {
            let grant = Statement::new("GRANT ");
            vec![
                list(grant, *privileges)
                    .sql(" ON SCHEMA ")
                    .ident(name)
                    .sql(" TO ")
                    .ident(owner),
            ]
        }
        Change::Grant(grant) => grant
            .targets
            .iter()
            .map(|target| {
                let about = About {
                    privileges: grant.privileges,
                    kind: grant.object_type,
                    columns: &grant.columns,
                };
                grant_on(&about, &[target], &[&grant.role], grant.with_grant_option)
            })
            .collect(),
        Change::Revoke(revoke) => self::revoke(revoke, &plan.executor),
        Change::SetDefaultPrivilege(default) => vec![default_privilege(default, &[&default.grantee], true)],
        Change::RevokeDefaultPrivilege(default) => {
            vec![default_privilege(default, &[&default.grantee], false)]
        }
        Change::AddMember {
            role,
            member,
            inherit,
            admin,
            set,
        } => {
            vec![add_member(
                role,
                &[member],
                Options {
                    inherit: Some(*inherit),
                    admin: *admin,
                    set: *set,
                },
                plan,
            )]
        }
        Change::UpdateMemberOptions {
            role,
            member,
            grantor,
            inherit,
            admin,
            set,
        } => {
            vec![update_member(
                role,
                member,
                grantor.as_deref(),
                *inherit,
                *admin,
                *set,
                plan,
            )]
        }
        Change::RemoveMember {
            role,
            member,
            grantor,
        } => vec![granted_by(
            Statement::new("REVOKE ").ident(role).sql(" FROM ").ident(member),
            grantor.as_deref(),
        )],
        Change::ReassignOwned { from_role, to_role } => {
            vec![
                Statement::new("REASSIGN OWNED BY ")
                    .ident(from_role)
                    .sql(" TO ")
                    .ident(to_role),
            ]
        }
        Change::DropOwned { role } => vec![Statement::new("DROP OWNED BY ").ident(role)],
        Change::DropRole { name } => vec![Statement::new("DROP ROLE IF EXISTS ").ident(name)],
        Change::TerminateSessions { oid, .. } => vec![
            Statement::new("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usesysid = ")
                .number(i64::from(*oid))
                .sql(" AND pid <> pg_backend_pid()"),
        ],
    })
}

fn create_role(name: &str, state: &RoleState) -> Vec<Statement> {
    let create = Statement::new("CREATE ROLE ").ident(name).sql(" ");
    let mut create = create.list(" ", state.flags(), attribute);
    if state.connection_limit != -1 {
        create = attribute(
            create.sql(" "),
            Attribute::ConnectionLimit(state.connection_limit),
        );
    }
    if state.password_valid_until.is_some() {
        create = attribute(
            create.sql(" "),
            Attribute::ValidUntil(state.password_valid_until.clone()),
        );
    }
    let comment = state
        .comment
        .as_deref()
        .map(|comment| comment_on(name, Some(comment)));
    let settings = state
        .config
        .iter()
        .map(|(parameter, value)| set(name, parameter, value));
    [create].into_iter().chain(comment).chain(settings).collect()
}

/// Attributes are one statement; each setting is one of its own.
fn alter_role(name: &str, attributes: &[Attribute]) -> Vec<Statement> {
    let (settings, plain): (Vec<_>, Vec<_>) = attributes
        .iter()
        .partition(|a| matches!(a, Attribute::SetConfig(..) | Attribute::ResetConfig(_)));
    let alter = (!plain.is_empty()).then(|| {
        Statement::new("ALTER ROLE ")
            .ident(name)
            .sql(" ")
            .list(" ", plain.into_iter().cloned(), attribute)
    });
    let settings = settings.into_iter().map(|setting| match setting {
        Attribute::SetConfig(parameter, value) => set(name, parameter, value),
        other => attribute(Statement::new("ALTER ROLE ").ident(name).sql(" "), other.clone()),
    });
    alter.into_iter().chain(settings).collect()
}

fn attribute(statement: Statement, attribute: Attribute) -> Statement {
    let flag = |on: bool, yes, no| if on { yes } else { no };
    match attribute {
        Attribute::Login(on) => statement.sql(flag(on, "LOGIN", "NOLOGIN")),
        Attribute::Superuser(on) => statement.sql(flag(on, "SUPERUSER", "NOSUPERUSER")),
        Attribute::Createdb(on) => statement.sql(flag(on, "CREATEDB", "NOCREATEDB")),
        Attribute::Createrole(on) => statement.sql(flag(on, "CREATEROLE", "NOCREATEROLE")),
        Attribute::Inherit(on) => statement.sql(flag(on, "INHERIT", "NOINHERIT")),
        Attribute::Replication(on) => statement.sql(flag(on, "REPLICATION", "NOREPLICATION")),
        Attribute::Bypassrls(on) => statement.sql(flag(on, "BYPASSRLS", "NOBYPASSRLS")),
        Attribute::ConnectionLimit(limit) => statement.sql("CONNECTION LIMIT ").number(limit.into()),
        Attribute::ValidUntil(moment) => statement
            .sql("VALID UNTIL ")
            .literal(moment.as_deref().unwrap_or("infinity")),
        Attribute::SetConfig(parameter, value) => values(
            parameter_name(statement.sql("SET "), &parameter).sql(" TO "),
            &parameter,
            &value,
        ),
        Attribute::ResetConfig(parameter) => parameter_name(statement.sql("RESET "), &parameter),
    }
}

fn set(role: &str, parameter: &str, value: &str) -> Statement {
    let statement = Statement::new("ALTER ROLE ")
        .ident(role)
        .sql(" ")
        .doing(Doing::Configuring);
    attribute(
        statement,
        Attribute::SetConfig(parameter.to_owned(), value.to_owned()),
    )
}

/// `app.tenant` is two names.
fn parameter_name(statement: Statement, parameter: &str) -> Statement {
    statement.qualified(&parameter.split('.').collect::<Vec<_>>())
}

fn values(statement: Statement, parameter: &str, value: &str) -> Statement {
    match guc::list(parameter, value) {
        Some(names) if !names.is_empty() => {
            statement.list(", ", names, |statement, name| statement.literal(&name))
        }
        _ => statement.literal(value),
    }
}

fn comment_on(role: &str, comment: Option<&str>) -> Statement {
    let statement = Statement::new("COMMENT ON ROLE ").ident(role).sql(" IS ");
    match comment {
        Some(comment) => statement.literal(comment),
        None => statement.sql("NULL"),
    }
}

/// What a GRANT or REVOKE is about.
pub(super) struct About<'a> {
    pub(super) privileges: Privileges,
    pub(super) kind: ObjectType,
    pub(super) columns: &'a [String],
}

pub(super) fn grant_on(
    about: &About<'_>,
    targets: &[&Target],
    roles: &[&str],
    with_grant_option: bool,
) -> Statement {
    let statement = on(Statement::new("GRANT "), about, targets).sql(" TO ");
    grantees(statement, roles).when(with_grant_option, |statement| statement.sql(" WITH GRANT OPTION"))
}

pub(super) fn revoke_on(about: &About<'_>, targets: &[&Target], roles: &[&str]) -> Statement {
    grantees(on(Statement::new("REVOKE "), about, targets).sql(" FROM "), roles)
}

/// Only who gave a privilege can take it, so we act as them for one statement.
fn revoke(revoke: &Revoke, executor: &str) -> Vec<Statement> {
    let about = About {
        privileges: revoke.privileges,
        kind: revoke.object_type,
        columns: &revoke.columns,
    };
    let start = Statement::new("REVOKE ").when(revoke.grant_option_only, |statement| {
        statement.sql("GRANT OPTION FOR ")
    });
    let statement = grantees(
        on(start, &about, &[&revoke.target]).sql(" FROM "),
        &[&revoke.role],
    )
    .when(revoke.cascade, |statement| statement.sql(" CASCADE"));
    match &revoke.grantor {
        None => vec![statement],
        Some(grantor) => vec![
            Statement::new("SET LOCAL ROLE ").ident(grantor),
            statement,
            Statement::new("SET LOCAL ROLE ").ident(executor),
        ],
    }
}

/// `privileges ON kind objects`
fn on(statement: Statement, about: &About<'_>, targets: &[&Target]) -> Statement {
    let statement = if about.columns.is_empty() {
        list(statement, about.privileges)
    } else {
        statement.list(", ", about.privileges.iter(), |statement, privilege| {
            statement
                .sql(privilege.name())
                .sql(" (")
                .list(", ", about.columns, |s, column| s.ident(column))
                .sql(")")
        })
    };
    let statement = statement.sql(" ON ").sql(about.kind.spec().keyword).sql(" ");
    statement.list(", ", targets, |statement, target| {
        self::target(statement, about.kind, target)
    })
}

fn target(statement: Statement, kind: ObjectType, target: &Target) -> Statement {
    let statement = match (kind, &target.schema) {
        // A number, checked to be one when the manifest was.
        (ObjectType::LargeObject, _) => {
            return statement.number(target.name.parse().unwrap_or_default());
        }
        (ObjectType::Parameter, _) => return parameter_name(statement, &target.name),
        (_, Some(schema)) => statement.qualified(&[&**schema, &*target.name]),
        (_, None) => statement.ident(&target.name),
    };
    match &target.types {
        Some(types) => statement
            .sql("(")
            .list(", ", types, |statement, text| types::append(statement, text))
            .sql(")"),
        None => statement,
    }
}

fn grantees(statement: Statement, roles: &[&str]) -> Statement {
    statement.list(", ", roles, |statement, role| {
        if *role == PUBLIC {
            statement.sql("PUBLIC")
        } else {
            statement.ident(role)
        }
    })
}

fn list(statement: Statement, privileges: Privileges) -> Statement {
    statement.list(", ", privileges.iter(), |statement, privilege| {
        statement.sql(privilege.name())
    })
}

pub(super) fn default_privilege(default: &DefaultPrivilege, roles: &[&str], grant: bool) -> Statement {
    let statement = Statement::new("ALTER DEFAULT PRIVILEGES FOR ROLE ").ident(&default.owner);
    let statement = match default.scope.schema() {
        Some(schema) => statement.sql(" IN SCHEMA ").ident(schema),
        None => statement,
    };
    let (verb, preposition) = if grant {
        (" GRANT ", " TO ")
    } else {
        (" REVOKE ", " FROM ")
    };
    let objects = default.on_type.spec().defaults.unwrap_or("TABLES");
    let statement = list(statement.sql(verb), default.privileges)
        .sql(" ON ")
        .sql(objects)
        .sql(preposition);
    grantees(statement, roles)
}

/// The options of a membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Options {
    pub(super) inherit: Option<bool>,
    pub(super) admin: bool,
    pub(super) set: Option<bool>,
}

pub(super) fn add_member(role: &str, members: &[&str], options: Options, plan: &Plan) -> Statement {
    let statement = Statement::new("GRANT ")
        .ident(role)
        .sql(" TO ")
        .list(", ", members, |s, member| s.ident(member));
    if plan.version < 160_000 {
        return statement.when(options.admin, |statement| statement.sql(" WITH ADMIN OPTION"));
    }
    with_options(
        statement,
        options.inherit,
        options.admin.then_some(true),
        options.set,
    )
}

fn update_member(
    role: &str,
    member: &str,
    grantor: Option<&str>,
    inherit: Option<bool>,
    admin: Option<bool>,
    set: Option<bool>,
    plan: &Plan,
) -> Statement {
    if plan.version < 160_000 && admin == Some(false) {
        return Statement::new("REVOKE ADMIN OPTION FOR ")
            .ident(role)
            .sql(" FROM ")
            .ident(member);
    }
    let statement = Statement::new("GRANT ").ident(role).sql(" TO ").ident(member);
    if plan.version < 160_000 {
        return statement.sql(" WITH ADMIN OPTION");
    }
    granted_by(with_options(statement, inherit, admin, set), grantor)
}

fn with_options(
    statement: Statement,
    inherit: Option<bool>,
    admin: Option<bool>,
    set: Option<bool>,
) -> Statement {
    let options = [
        (inherit, "INHERIT TRUE", "INHERIT FALSE"),
        (admin, "ADMIN TRUE", "ADMIN FALSE"),
        (set, "SET TRUE", "SET FALSE"),
    ];
    let chosen = options
        .into_iter()
        .filter_map(|(on, yes, no)| on.map(|on| if on { yes } else { no }));
    statement.sql(" WITH ").list(", ", chosen, Statement::sql)
}

fn granted_by(statement: Statement, grantor: Option<&str>) -> Statement {
    match grantor {
        Some(grantor) => statement.sql(" GRANTED BY ").ident(grantor),
        None => statement,
    }
}
