//! Renders memberships. Before PostgreSQL 16 their only option is ADMIN.

use stanchion_postgres::Statement;

use crate::plan::Plan;

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

pub(super) fn update_member(
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

pub(super) fn granted_by(statement: Statement, grantor: Option<&str>) -> Statement {
    match grantor {
        Some(grantor) => statement.sql(" GRANTED BY ").ident(grantor),
        None => statement,
    }
}
