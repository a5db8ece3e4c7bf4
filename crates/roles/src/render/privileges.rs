//! Renders GRANT, REVOKE and default privileges.

use stanchion_postgres::Statement;

use super::roles::parameter_name;
use super::types;
use crate::model::{ObjectType, PUBLIC, Privileges};
use crate::plan::{DefaultPrivilege, GrantTarget, Revoke};

/// The subject of a GRANT or REVOKE.
pub(super) struct About<'a> {
    pub(super) privileges: Privileges,
    pub(super) kind: ObjectType,
    pub(super) columns: &'a [String],
}

pub(super) fn grant_on(
    about: &About<'_>,
    targets: &[&GrantTarget],
    roles: &[&str],
    with_grant_option: bool,
) -> Statement {
    let statement = on(Statement::new("GRANT "), about, targets).sql(" TO ");
    grantees(statement, roles).when(with_grant_option, |statement| statement.sql(" WITH GRANT OPTION"))
}

pub(super) fn revoke_on(about: &About<'_>, targets: &[&GrantTarget], roles: &[&str]) -> Statement {
    grantees(on(Statement::new("REVOKE "), about, targets).sql(" FROM "), roles)
}

/// Only the grantor can revoke a privilege, so the executor acts as the grantor for one statement.
pub(super) fn revoke(revoke: &Revoke, executor: &str) -> Vec<Statement> {
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
fn on(statement: Statement, about: &About<'_>, targets: &[&GrantTarget]) -> Statement {
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

fn target(statement: Statement, kind: ObjectType, target: &GrantTarget) -> Statement {
    let statement = match (kind, &target.schema) {
        // The manifest check ensures that it is a number.
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

pub(super) fn list(statement: Statement, privileges: Privileges) -> Statement {
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
        let verb = if default.grant_option_only {
            " REVOKE GRANT OPTION FOR "
        } else {
            " REVOKE "
        };
        (verb, " FROM ")
    };
    let objects = default.on_type.spec().defaults.unwrap_or("TABLES");
    let statement = list(statement.sql(verb), default.privileges)
        .sql(" ON ")
        .sql(objects)
        .sql(preposition);
    grantees(statement, roles).when(grant && default.with_grant_option, |statement| {
        statement.sql(" WITH GRANT OPTION")
    })
}
