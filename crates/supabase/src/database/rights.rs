//! Whether the administrator can do what has to be done; asked before anything is done.
//!
//! PostgreSQL answers a GRANT without the right to grant with a mere warning, so what is essential is looked up here,
//! and its absence is said in words that can be acted on.

use stanchion_kernel::Problem;

use super::catalog::Catalog;
use super::request::Request;
use super::roles::{Attribute, Names};
use super::steps::REQUIRED_EXTENSIONS;

/// The oldest version that the services are tested with.
const OLDEST: u32 = 150_000;

/// Refuses what cannot end well.
pub(super) fn check(catalog: &Catalog, request: &Request) -> Result<(), Problem> {
    let (server, database) = (&catalog.server, &catalog.database);
    let (role, name) = (&server.role, &database.name);
    if server.version < OLDEST {
        let message = format!(
            "PostgreSQL {} is too old for Supabase: 15 or newer is needed",
            server.version / 10_000
        );
        return Err(Problem::human("PostgresTooOld", message));
    }
    if server.in_recovery {
        let message = "the server is a replica and cannot be written to: name the primary's host".to_owned();
        return Err(Problem::transient("ReadOnlyServer", message));
    }
    if let Some((project, _)) = &catalog.installation
        && *project != request.project
    {
        let message = format!(
            "database {name:?} belongs to the project {project}: use another database, or if that project is gone, run \
             UPDATE _stanchion.installation SET project = '{}' there",
            request.project.replace('\'', "''")
        );
        return Err(Problem::human("DatabaseTaken", message));
    }
    if let Some(missing) = REQUIRED_EXTENSIONS
        .iter()
        .find(|extension| !database.available.contains(**extension))
    {
        let message = format!(
            "the server does not have the extension {missing}: install PostgreSQL's contrib package on it"
        );
        return Err(Problem::human("ExtensionMissing", message));
    }
    let internal = names(catalog, request).internal_database();
    if request.wants_internal_database() && internal == *name {
        let message = format!(
            "database {name:?} is the one that analytics and the pooler keep for themselves: use another"
        );
        return Err(Problem::human("DatabaseReserved", message));
    }
    if database.public.is_none() {
        let message = format!("database {name:?} has no schema public: CREATE SCHEMA public");
        return Err(Problem::human("SchemaMissing", message));
    }
    if server.attributes.superuser {
        return Ok(());
    }
    let lacks = |what: &str, remedy: String| {
        let message = format!("role {role:?} {what} in database {name:?}; as a superuser: {remedy}");
        Err(Problem::human("InsufficientPrivilege", message))
    };
    if !server.attributes.create_role {
        return lacks(
            "may not create roles",
            format!("ALTER ROLE \"{role}\" CREATEROLE"),
        );
    }
    if !database.may_create || !database.ours {
        return lacks(
            &format!("may not do what the owner, {:?}, may", database.owner),
            format!("ALTER DATABASE \"{name}\" OWNER TO \"{role}\""),
        );
    }
    if let Some((owner, false)) = &database.public {
        return lacks(
            &format!("may not grant on the schema public, which belongs to {owner:?},"),
            format!("GRANT \"{owner}\" TO \"{role}\""),
        );
    }
    let creates = request.wants_internal_database() && !database.internal.contains(&internal);
    if creates && !server.attributes.create_db {
        return lacks(
            &format!("may not create the database {internal:?}, which analytics and the pooler need,"),
            format!("ALTER ROLE \"{role}\" CREATEDB"),
        );
    }
    Ok(())
}

/// May we give this attribute to a role? Up to 15 two of them were for superusers only; since then one can give what
/// one has.
pub(super) fn may_give(catalog: &Catalog, attribute: Attribute) -> bool {
    let own = catalog.server.attributes;
    let bound = catalog.server.version >= stanchion_postgres::server::BOUND_CREATEROLE;
    own.superuser
        || match attribute {
            Attribute::CreateRole => own.create_role,
            Attribute::CreateDb => own.create_role && (!bound || own.create_db),
            Attribute::Replication => bound && own.replication,
            Attribute::BypassRls => bound && own.bypass_rls,
        }
}

/// The names of the project's logins: those that were chosen once; else the plain ones, unless another project has them.
pub(super) fn names(catalog: &Catalog, request: &Request) -> Names {
    if let Some((_, suffix)) = &catalog.installation {
        return Names::with_suffix(suffix);
    }
    let plain = Names::with_suffix("");
    let taken = super::roles::Login::ALL.iter().any(|login| {
        catalog.roles.get(&plain.of(*login)).is_some_and(|role| {
            let (_, mark) = super::mark::split(&role.comment);
            role.marked_database_exists
                && mark.is_some_and(|mark| {
                    mark.project != request.project || mark.database_oid != catalog.database.oid
                })
        })
    });
    if taken {
        Names::apart(&request.project)
    } else {
        plain
    }
}
