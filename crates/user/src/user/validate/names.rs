//! Validates names and values, by the rules of PostgreSQL and the guide.

use stanchion_kernel::Problem;
use stanchion_kernel::marks::looks_marked;
use stanchion_postgres::handover;

use crate::user::target::Wanted;

/// Names that PostgreSQL reserves.
const RESERVED: &[&str] = &["public", "none", "postgres"];
/// PostgreSQL's limit, in bytes: longer names are truncated silently.
pub(super) const NAME_LIMIT: usize = 63;

/// The guide's rules for a name, with the guide's messages.
pub fn username(name: &str) -> Result<(), Problem> {
    let refuse = |message: &str| Err(Problem::permanent("InvalidSpec", message));
    if name.contains('-') {
        return refuse("username cannot contain hyphens: postgres rejects it");
    }
    if name.len() > NAME_LIMIT {
        return refuse("username too long: postgres limit is 63 chars");
    }
    let legal = |(index, c): (usize, char)| {
        c.is_ascii_lowercase() || c == '_' || (index > 0 && (c.is_ascii_digit() || c == '$'))
    };
    if name.is_empty() || !name.chars().enumerate().all(legal) {
        return refuse("username must be lower-case ASCII: ^[a-z_][a-z0-9_$]*$");
    }
    if name.starts_with(handover::PREFIX) {
        return refuse("username is reserved by the operator");
    }
    if name.starts_with("pg_") || RESERVED.contains(&name) {
        return refuse("username is reserved by postgres");
    }
    Ok(())
}

/// `spec.database` becomes part of connection strings, so it is more restricted than in PostgreSQL.
pub(super) fn database_name(name: &str) -> Result<(), Problem> {
    let legal = |(index, c): (usize, char)| {
        c.is_ascii_alphabetic() || c == '_' || (index > 0 && (c.is_ascii_digit() || c == '$' || c == '-'))
    };
    if !name.is_empty() && name.len() <= NAME_LIMIT && name.chars().enumerate().all(legal) {
        return Ok(());
    }
    let message = "database must match ^[A-Za-z_][A-Za-z0-9_$-]*$ and have at most 63 characters";
    Err(Problem::permanent("InvalidSpec", message))
}

/// PostgreSQL truncates long names silently, and does not support NUL bytes.
fn role_name(field: &str, name: &str) -> Result<(), Problem> {
    if !name.is_empty() && name.len() <= NAME_LIMIT && !name.contains('\0') {
        return Ok(());
    }
    Err(Problem::permanent(
        "InvalidSpec",
        format!("{field}: {name:?} cannot be a role: postgres limit is 63 chars"),
    ))
}

/// Checks everything that becomes part of a statement and is not checked elsewhere.
pub(super) fn check_values(wanted: &Wanted) -> Result<(), Problem> {
    for (name, value) in &wanted.role.parameters {
        parameter_name(name)?;
        no_nul(&format!("role.parameters.{name}"), value)?;
    }
    let comment = wanted.role.comment.as_deref().unwrap_or_default();
    no_nul("role.comment", comment)?;
    if looks_marked(comment) {
        let message =
            "role.comment contains \"[stanchion \", which begins the operator's own mark of ownership";
        return Err(Problem::permanent("InvalidSpec", message));
    }
    for membership in &wanted.member_of {
        role_name("memberOf", &membership.role)?;
        if membership.role == wanted.username {
            let message = "memberOf: a role cannot be a member of itself";
            return Err(Problem::permanent("InvalidSpec", message));
        }
    }
    for schema in wanted
        .databases
        .values()
        .flat_map(|request| request.schemas.values())
    {
        for owner in &schema.default_for {
            role_name("defaultPrivilegesForRoles", owner)?;
        }
    }
    if let Some(template) = wanted
        .create_database
        .as_ref()
        .and_then(|create| create.template.as_ref())
    {
        role_name("createDatabase.template", template)?;
    }
    Ok(())
}

fn no_nul(field: &str, value: &str) -> Result<(), Problem> {
    if value.contains('\0') {
        let message = format!("{field} contains a NUL byte, which postgres cannot store");
        return Err(Problem::permanent("InvalidSpec", message));
    }
    Ok(())
}

/// A parameter's name is part of the statement's text, so only valid parameter names are accepted.
fn parameter_name(name: &str) -> Result<(), Problem> {
    let legal = |part: &str| {
        let mut characters = part.chars();
        characters
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
    };
    if name.len() <= NAME_LIMIT && name.split('.').all(legal) {
        return Ok(());
    }
    Err(Problem::permanent(
        "InvalidSpec",
        format!("role.parameters: {name:?} is not the name of a parameter"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C34, C35, C40 and A16, with the guide's messages.
    #[test]
    fn usernames_as_in_the_guide() {
        let too_long = "a".repeat(64);
        let bytes = "\u{e9}".repeat(32);
        for (name, word) in [
            ("a-b", "hyphens"),
            (too_long.as_str(), "too long"),
            (bytes.as_str(), "too long"),
            ("x SUPERUSER", "lower-case"),
            ("a;DROP ROLE b", "lower-case"),
            ("A", "lower-case"),
            ("\u{dc}", "lower-case"),
            ("\"q\"", "lower-case"),
            ("$$", "lower-case"),
            ("1a", "lower-case"),
            ("", "lower-case"),
            ("pg_x", "reserved"),
            ("public", "reserved"),
            ("none", "reserved"),
            ("postgres", "reserved"),
        ] {
            let problem = username(name).unwrap_err();
            assert!(problem.message.contains(word), "{name}: {problem}");
        }
        for name in ["a".repeat(63).as_str(), "_a$1", "user", "postgres2"] {
            username(name).unwrap();
        }
    }

    #[test]
    fn parameters_are_named_as_postgresql_names_them() {
        for name in ["search_path", "TimeZone", "plpgsql.extra_warnings", "a.b.c"] {
            parameter_name(name).unwrap();
        }
        for name in ["", "a b", "a;b", "a.", ".a", "a'", "1a", "a-b", "\""] {
            parameter_name(name).unwrap_err();
        }
    }
}
