//! Checks the owners of what the steps use. A step reads, calls and completes what it finds, mostly as a superuser, so
//! somebody who created that first could run code as one: a function behind an event trigger, a view in place of a
//! table, the default of a column. So the steps use only what is absent or belongs to a trusted owner.
//!
//! The check reads only the catalogs. It runs in the transaction of the steps, before anything else of the database is
//! read. An object that is absent then and created later makes the step fail: nothing important is created `IF NOT
//! EXISTS` where strangers may create; a step that uses a routine is checked again before the next statement.

use std::collections::BTreeSet;

use stanchion_kernel::Problem;
use stanchion_postgres::{Query, Row, RowError, Server, Statement};

use super::catalog::decode;
use super::roles::{Names, TABLE as ROLES};
use super::steps::{Step, TABLE};

/// The trusted owners of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trust {
    /// The administrator or a superuser: the object runs, or is read, with the administrator's privileges.
    Administrator,
    /// Also an extension and the roles of this project.
    Project,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Schema,
    /// An ordinary or partitioned table: reading a view runs its owner's code.
    Table,
    /// A function or procedure, with any arguments.
    Routine,
}

/// An object that a step reads, calls, completes, or creates if it is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thing {
    pub(super) kind: Kind,
    pub(super) schema: &'static str,
    pub(super) name: &'static str,
    pub(super) trust: Trust,
}

impl Thing {
    pub(super) const fn schema(schema: &'static str) -> Self {
        Self {
            kind: Kind::Schema,
            schema,
            name: "",
            trust: Trust::Project,
        }
    }

    pub(super) const fn table(schema: &'static str, name: &'static str) -> Self {
        Self {
            kind: Kind::Table,
            schema,
            name,
            trust: Trust::Project,
        }
    }

    pub(super) const fn routine(schema: &'static str, name: &'static str) -> Self {
        Self {
            kind: Kind::Routine,
            schema,
            name,
            trust: Trust::Project,
        }
    }

    /// The same, but run or read with the administrator's privileges.
    pub(super) const fn ours(self) -> Self {
        Self {
            trust: Trust::Administrator,
            ..self
        }
    }
}

/// The record, which every reconcile reads.
pub(super) const RECORD: &[Thing] = &[
    Thing::schema("_stanchion").ours(),
    Thing::table("_stanchion", "installation").ours(),
    Thing::table("_stanchion", "steps").ours(),
    Thing::table("_stanchion", "logins").ours(),
    Thing::table("_stanchion", "made").ours(),
    Thing::routine("_stanchion", "open_extension").ours(),
];

/// The schema whose routines the scripts of extensions could call instead of their own.
const EXTENSIONS: &str = "extensions";

/// An existing object of that name, perhaps of another kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// `n`, `c`, `p`, or `e` for an event trigger, whose owner is that of its function.
    class: String,
    schema: String,
    name: String,
    /// `relkind`.
    relation: String,
    owner: String,
    superuser: bool,
    /// Whether it is a member of an extension.
    extension: bool,
}

const QUESTION: &str = "\
SELECT f.class, f.schema, f.name, f.relation, r.rolname::pg_catalog.text, r.rolsuper, \
       EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = f.catalog AND d.objid = f.oid AND d.deptype = 'e') \
FROM (\
  SELECT 'n' AS class, n.nspname::pg_catalog.text AS schema, '' AS name, '' AS relation, n.nspowner AS owner, \
         'pg_catalog.pg_namespace'::pg_catalog.regclass AS catalog, n.oid \
  FROM pg_catalog.pg_namespace n WHERE n.nspname = ANY ($1) \
  UNION ALL \
  SELECT 'c', n.nspname::pg_catalog.text, c.relname::pg_catalog.text, c.relkind::pg_catalog.text, c.relowner, \
         'pg_catalog.pg_class'::pg_catalog.regclass, c.oid \
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
  WHERE n.nspname = ANY ($1) AND c.relname = ANY ($2) \
  UNION ALL \
  SELECT 'p', n.nspname::pg_catalog.text, p.proname::pg_catalog.text, '', p.proowner, \
         'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid \
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
  WHERE n.nspname = ANY ($1) AND (p.proname = ANY ($3) OR (n.nspname = $4 AND NOT EXISTS (\
    SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass \
      AND d.objid = p.oid AND d.deptype = 'e'))) \
  UNION ALL \
  SELECT 'e', '', t.evtname::pg_catalog.text, p.oid::pg_catalog.regprocedure::pg_catalog.text, p.proowner, \
         'pg_catalog.pg_event_trigger'::pg_catalog.regclass, t.oid \
  FROM pg_catalog.pg_event_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.evtfoid WHERE t.evtenabled <> 'D'\
) f JOIN pg_catalog.pg_roles r ON r.oid = f.owner \
ORDER BY 1, 2, 3 LIMIT 1001";
/// The most objects that are accepted; more of them could hide the relevant one.
const MOST: usize = 1000;

/// Every object that any step uses.
fn all() -> impl Iterator<Item = &'static Thing> {
    RECORD.iter().chain(TABLE.iter().flat_map(|step| step.touches))
}

/// The query for the existing ones.
pub(super) fn question() -> Query {
    let names = |of: fn(&Thing) -> Option<&'static str>| {
        let names: BTreeSet<&str> = all().filter_map(of).collect();
        names.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    Query::new(QUESTION)
        .texts(names(|thing| Some(thing.schema)))
        .texts(names_of_kind(Kind::Table))
        .texts(names_of_kind(Kind::Routine))
        .text(EXTENSIONS)
}

fn names_of_kind(kind: Kind) -> Vec<String> {
    let names: BTreeSet<&str> = all()
        .filter(|thing| thing.kind == kind)
        .map(|thing| thing.name)
        .collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Decodes the answer.
pub(super) fn of_rows(rows: &[Row]) -> Result<Vec<Found>, RowError> {
    decode(rows, |columns| {
        Ok(Found {
            class: columns.next()?,
            schema: columns.next()?,
            name: columns.next()?,
            relation: columns.next()?,
            owner: columns.next()?,
            superuser: columns.next()?,
            extension: columns.next()?,
        })
    })
}

/// Refuses to read the record if it belongs to somebody else.
pub(super) fn check_record(found: &[Found], server: &Server) -> Result<(), Problem> {
    if found.len() > MOST {
        let message = format!(
            "schema {EXTENSIONS:?} has more than {MOST} routines that belong to no extension: drop those that nobody needs"
        );
        return Err(Problem::human("ObjectNotTrusted", message));
    }
    check(found, server, &BTreeSet::new(), RECORD)
}

/// Refuses to run steps on objects of strangers, or anything at all if a stranger's function would run with it.
pub(super) fn check_steps<'a>(
    found: &[Found],
    server: &Server,
    names: &Names,
    steps: impl IntoIterator<Item = &'a Step>,
) -> Result<(), Problem> {
    let roles: BTreeSet<String> = ROLES.iter().map(|role| names.role(role)).collect();
    for trigger in found.iter().filter(|found| found.class == "e") {
        if !trigger.is_ours(server) {
            return Err(refused(
                &format!("event trigger {:?} calls {}", trigger.name, trigger.relation),
                "which belongs to",
                trigger,
                server,
            ));
        }
    }
    for step in steps {
        check(found, server, &roles, step.touches)?;
        if step.creates_extension() {
            for routine in found
                .iter()
                .filter(|found| found.class == "p" && found.schema == EXTENSIONS)
            {
                if !routine.is_ours(server) && !routine.extension {
                    let what = format!("routine {EXTENSIONS}.{}", routine.name);
                    return Err(refused(&what, "belongs to", routine, server));
                }
            }
        }
    }
    Ok(())
}

fn check(
    found: &[Found],
    server: &Server,
    roles: &BTreeSet<String>,
    things: &[Thing],
) -> Result<(), Problem> {
    for thing in things {
        for found in found.iter().filter(|found| found.has_the_name_of(thing)) {
            if thing.kind == Kind::Table && !["r", "p"].contains(&found.relation.as_str()) {
                return Err(refused(
                    &format!("{} is no table", found.text()),
                    "and belongs to",
                    found,
                    server,
                ));
            }
            let theirs = thing.trust == Trust::Project && (found.extension || roles.contains(&found.owner));
            if !found.is_ours(server) && !theirs {
                return Err(refused(&found.text(), "belongs to", found, server));
            }
        }
    }
    Ok(())
}

fn refused(what: &str, belongs: &str, found: &Found, server: &Server) -> Problem {
    let (owner, role) = (&found.owner, &server.role);
    let message = format!(
        "{what} {belongs} role {owner:?}, who could run code with the privileges of {role:?} through it: drop it, or review \
         it and then run ALTER … OWNER TO \"{role}\""
    );
    Problem::human("ObjectNotTrusted", message)
}

impl Found {
    fn has_the_name_of(&self, thing: &Thing) -> bool {
        let class = match thing.kind {
            Kind::Schema => "n",
            Kind::Table => "c",
            Kind::Routine => "p",
        };
        self.class == class && self.schema == thing.schema && self.name == thing.name
    }

    /// Whether it belongs to the administrator or a superuser.
    fn is_ours(&self, server: &Server) -> bool {
        self.superuser || self.owner == server.role || server.cloud_admin_of.contains(&self.owner)
    }

    fn text(&self) -> String {
        match self.class.as_str() {
            "n" => format!("schema {:?}", self.schema),
            "c" => format!("relation {:?}.{:?}", self.schema, self.name),
            _ => format!("routine {:?}.{:?}", self.schema, self.name),
        }
    }
}

/// Whether every relation and routine that a step uses is absent, or belongs to this role.
pub(super) fn is_for(step: &Step, found: &[Found], role: &str) -> bool {
    step.touches.iter().all(|thing| {
        let same = found.iter().filter(|found| found.has_the_name_of(thing));
        thing.kind == Kind::Schema || same.into_iter().all(|found| found.owner == role)
    })
}

/// Whether the schema of the record exists.
pub(super) fn has_record_schema(found: &[Found]) -> bool {
    found
        .iter()
        .any(|found| found.class == "n" && found.schema == "_stanchion")
}

/// Checks again after a step: somebody could have created one of its routines after the first check.
pub(super) fn look_again(step: &Step) -> Option<Statement> {
    let routines: Vec<&Thing> = step
        .touches
        .iter()
        .filter(|thing| thing.kind == Kind::Routine && thing.trust == Trust::Administrator)
        .collect();
    (!routines.is_empty()).then(|| {
        Statement::new(
            "DO $stanchion$ DECLARE routine pg_catalog.text; BEGIN \
             SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text INTO routine FROM pg_catalog.pg_proc p \
             JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace JOIN pg_catalog.pg_roles r ON r.oid = p.proowner \
             WHERE NOT r.rolsuper AND r.rolname <> current_user AND (n.nspname, p.proname) IN (",
        )
        .list(", ", routines, |statement, thing| {
            statement
                .sql("(")
                .literal(thing.schema)
                .sql(", ")
                .literal(thing.name)
                .sql(")")
        })
        .sql(
            ") LIMIT 1; IF FOUND THEN RAISE EXCEPTION 'routine % was made by somebody else meanwhile', routine \
             USING ERRCODE = 'insufficient_privilege'; END IF; END $stanchion$",
        )
    })
}

#[cfg(test)]
mod tests {
    use stanchion_postgres::server::Attributes;

    use super::super::catalog::fresh;
    use super::*;

    fn found(class: &str, schema: &str, name: &str, relation: &str, owner: &str) -> Found {
        Found {
            class: class.to_owned(),
            schema: schema.to_owned(),
            name: name.to_owned(),
            relation: relation.to_owned(),
            owner: owner.to_owned(),
            superuser: owner == "postgres",
            extension: owner == "extension",
        }
    }

    fn server() -> Server {
        fresh(180_000, Attributes::default()).server
    }

    fn step(number: i32) -> &'static Step {
        TABLE.iter().find(|step| step.number == number).unwrap()
    }

    fn verdict(found: Found, number: i32) -> Option<String> {
        let names = Names::with_suffix("");
        let checked = check_steps(&[found], &server(), &names, [step(number)]);
        checked.err().map(|problem| {
            assert_eq!(problem.reason, "ObjectNotTrusted");
            problem.message
        })
    }

    #[test]
    fn the_record_is_the_administrators() {
        let check = |found: Found| check_record(&[found], &server()).is_ok();
        assert!(check(found("n", "_stanchion", "", "", "boss")));
        assert!(check(found("c", "_stanchion", "installation", "r", "postgres")));
        assert!(!check(found("c", "_stanchion", "installation", "v", "boss")));
        assert!(!check(found("c", "_stanchion", "steps", "r", "dev")));
        // A project's role is not trusted, either: it would run with more privileges than its own.
        assert!(!check(found("n", "_stanchion", "", "", "dashboard_user")));
    }

    #[test]
    fn what_a_step_touches_is_somebodys_whom_the_project_trusts() {
        for owner in ["boss", "postgres", "supabase_auth_admin", "extension"] {
            assert_eq!(verdict(found("n", "auth", "", "", owner), 20), None, "{owner}");
        }
        let said = verdict(found("n", "auth", "", "", "dev"), 20).unwrap();
        assert!(said.contains("schema \"auth\" belongs to role \"dev\""), "{said}");
        // An object of another step.
        assert_eq!(verdict(found("n", "pgbouncer", "", "", "dev"), 20), None);
    }

    #[test]
    fn what_runs_as_the_administrator_is_his_alone() {
        for owner in ["dashboard_user", "dev"] {
            assert!(verdict(found("p", "extensions", "pgrst_ddl_watch", "", owner), 80).is_some());
            assert!(verdict(found("e", "", "watch", "public.f()", owner), 20).is_some());
            assert!(verdict(found("p", "extensions", "digest", "", owner), 30).is_some());
        }
        assert_eq!(
            verdict(found("p", "extensions", "pgrst_ddl_watch", "", "postgres"), 80),
            None
        );
    }
}
