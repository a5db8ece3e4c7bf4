//! Checks the administrator's privileges before anything is changed.
//!
//! PostgreSQL answers a GRANT without grant option with a warning, so essential privileges are checked here, and their
//! absence is reported with what to do.

use stanchion_kernel::Problem;

use super::catalog::Catalog;
use super::mark;
use super::request::Request;
use super::roles::{Attribute, Login, Names};
use super::steps::REQUIRED_EXTENSIONS;

/// The oldest version that the services are tested with.
const OLDEST: u32 = 150_000;

/// Refuses a server that the services do not support.
pub(crate) fn check_version(version: u32) -> Result<(), Problem> {
    if version < OLDEST {
        let message = format!(
            "PostgreSQL {} is too old for Supabase: 15 or newer is needed",
            version / 10_000
        );
        return Err(Problem::human("PostgresTooOld", message));
    }
    Ok(())
}

/// Refuses what cannot succeed.
pub(super) fn check(catalog: &Catalog, request: &Request) -> Result<(), Problem> {
    let (server, database) = (&catalog.server, &catalog.database);
    let (role, name) = (&server.role, &database.name);
    check_version(server.version)?;
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
        let message = format!("database {name:?} is reserved for analytics and the pooler: use another");
        return Err(Problem::human("DatabaseReserved", message));
    }
    let stranger = database
        .internal
        .get(&internal)
        .filter(|_| request.wants_internal_database())
        .filter(|found| !found.superuser && found.owner != *role && found.owner != database.owner);
    if let Some(found) = stranger {
        let message = format!(
            "database {internal:?}, which analytics and the pooler would use, belongs to role {:?}: rename it, or run \
             ALTER DATABASE \"{internal}\" OWNER TO \"{role}\"",
            found.owner
        );
        return Err(Problem::human("ObjectNotTrusted", message));
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
    let creates = request.wants_internal_database() && !database.internal.contains_key(&internal);
    if creates && !server.attributes.create_db {
        return lacks(
            &format!("may not create the database {internal:?}, which analytics and the pooler need,"),
            format!("ALTER ROLE \"{role}\" CREATEDB"),
        );
    }
    Ok(())
}

/// Whether the administrator may grant this attribute. Up to 15 two of them need a superuser; since 16 a role can grant
/// what it has.
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

/// The names of the project's logins: the recorded ones; otherwise those without a suffix, unless another project has
/// them.
pub(super) fn names(catalog: &Catalog, request: &Request) -> Names {
    if let Some((_, suffix)) = &catalog.installation {
        return Names::with_suffix(suffix);
    }
    let plain = Names::with_suffix("");
    let taken = Login::ALL.iter().any(|login| {
        let name = plain.of(*login);
        catalog.roles.get(&name).is_some_and(|role| {
            let (_, mark) = mark::split(&role.comment);
            let mark = mark.filter(|mark| !mark.is_forged(&name, &request.key));
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use stanchion_kernel::redact::FingerprintKey;
    use stanchion_postgres::server::Attributes;

    use super::super::catalog::{RoleFacts, fresh};
    use super::*;

    const ALL: Attributes = Attributes {
        superuser: false,
        create_role: true,
        create_db: true,
        bypass_rls: true,
        replication: true,
    };

    fn request() -> Request {
        Request {
            project: "default/shop".to_owned(),
            uid: "uid".to_owned(),
            passwords: BTreeMap::new(),
            key: Arc::new(FingerprintKey::generate()),
        }
    }

    #[test]
    fn two_attributes_were_a_superusers_before_16() {
        use Attribute::{BypassRls, CreateDb, CreateRole, Replication};
        let all = [CreateDb, CreateRole, Replication, BypassRls];
        let given = |version, own| all.map(|attribute| may_give(&fresh(version, own), attribute));
        let superuser = Attributes {
            superuser: true,
            ..Attributes::default()
        };
        let plain = Attributes {
            create_role: true,
            ..Attributes::default()
        };
        assert_eq!(given(150_000, superuser), [true; 4]);
        assert_eq!(given(150_000, ALL), [true, true, false, false]);
        assert_eq!(given(160_000, ALL), [true; 4]);
        assert_eq!(given(150_000, plain), [true, true, false, false]);
        assert_eq!(given(160_000, plain), [false, true, false, false]);
    }

    /// The names next to an `authenticator` with this comment, whose database exists or not.
    fn names_beside(comment: &str, exists: bool) -> Names {
        let mut catalog = fresh(180_000, ALL);
        let role = RoleFacts {
            comment: comment.to_owned(),
            marked_database_exists: exists,
            ..RoleFacts::default()
        };
        catalog.roles.insert("authenticator".to_owned(), role);
        names(&catalog, &request())
    }

    #[test]
    fn names_are_taken_by_those_who_are_still_there() {
        let (plain, apart) = (Names::with_suffix(""), Names::apart("default/shop"));
        let other = "[stanchion SupabaseProject default/other 16385]";
        assert_eq!(names_beside("", false), plain);
        assert_eq!(names_beside("made by hand", false), plain);
        assert_eq!(
            names_beside("[stanchion SupabaseProject default/shop 16384]", true),
            plain
        );
        assert_eq!(names_beside(other, true), apart);
        assert_eq!(names_beside(other, false), plain, "their database is gone");
        // The same project, restored into another database of the server while the first still exists.
        assert_eq!(
            names_beside("[stanchion SupabaseProject default/shop 16385]", true),
            apart
        );
    }

    #[test]
    fn names_stay_once_they_are_recorded() {
        let mut catalog = fresh(180_000, ALL);
        catalog.installation = Some(("default/shop".to_owned(), "_old".to_owned()));
        assert_eq!(names(&catalog, &request()), Names::with_suffix("_old"));
    }

    #[test]
    fn what_cannot_end_well_is_not_begun() {
        let refused = |change: fn(&mut Catalog)| {
            let mut catalog = fresh(180_000, ALL);
            change(&mut catalog);
            check(&catalog, &request()).unwrap_err().reason
        };
        assert!(check(&fresh(180_000, ALL), &request()).is_ok());
        assert_eq!(
            refused(|catalog| catalog.server.version = 149_999),
            "PostgresTooOld"
        );
        assert_eq!(
            refused(|catalog| catalog.server.in_recovery = true),
            "ReadOnlyServer"
        );
        assert_eq!(refused(|catalog| catalog.database.public = None), "SchemaMissing");
        assert_eq!(
            refused(|catalog| catalog.database.ours = false),
            "InsufficientPrivilege"
        );
        assert_eq!(
            refused(|catalog| catalog.database.available.clear()),
            "ExtensionMissing"
        );
        assert_eq!(
            refused(|catalog| catalog.installation = Some(("default/other".to_owned(), String::new()))),
            "DatabaseTaken"
        );
    }
}
