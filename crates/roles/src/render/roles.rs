//! Renders roles: their attributes, settings and comments.

use stanchion_postgres::{Doing, Statement};

use crate::guc;
use crate::model::{Attribute, RoleState};

pub(super) fn create_role(name: &str, state: &RoleState) -> Vec<Statement> {
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

/// All attributes are one statement; each setting is a separate one.
pub(super) fn alter_role(name: &str, attributes: &[Attribute]) -> Vec<Statement> {
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

/// A name such as `app.tenant` consists of two identifiers.
pub(super) fn parameter_name(statement: Statement, parameter: &str) -> Statement {
    statement.qualified(&parameter.split('.').collect::<Vec<_>>())
}

fn values(statement: Statement, parameter: &str, value: &str) -> Statement {
    match guc::list(parameter, value) {
        Some(names) => statement.list(", ", names, |statement, name| statement.literal(&name)),
        None => statement.literal(value),
    }
}

pub(super) fn comment_on(role: &str, comment: Option<&str>) -> Statement {
    let statement = Statement::new("COMMENT ON ROLE ").ident(role).sql(" IS ");
    match comment {
        Some(comment) => statement.literal(comment),
        None => statement.sql("NULL"),
    }
}
