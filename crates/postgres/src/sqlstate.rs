//! Classifies SQLSTATEs: one table, read from the top.
//!
//! A wrong class is expensive: a permanent error that counts as transient is retried forever, and a transient one that
//! counts as permanent leaves a user without a database until somebody edits the object.

/// What has to change before a retry can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Passes by itself: retry soon.
    Transient,
    /// Something else must appear or change first: a Secret, a database, a role.
    Dependency,
    /// A person has to change something on the server.
    Human,
    /// The request is invalid until it changes.
    Permanent,
}

/// The action that failed. The same SQLSTATE means different things for a CREATE and for a DROP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Doing {
    /// Opening a connection, up to and including its settings.
    Connecting,
    /// Waiting for an advisory lock.
    Locking,
    /// Reading the catalog or data.
    Reading,
    /// CREATE …
    Creating,
    /// ALTER …, COMMENT, and all other statements.
    Altering,
    /// ALTER … SET parameter, whose value comes from the specification.
    Configuring,
    /// GRANT …
    Granting,
    /// REVOKE …
    Revoking,
    /// DROP …, REASSIGN OWNED.
    Dropping,
    /// COMMIT.
    Committing,
}

impl Doing {
    /// From the statement's first word.
    pub(crate) fn of_sql(sql: &str) -> Self {
        let word = sql.split_whitespace().next().unwrap_or_default();
        FIRST_WORDS
            .iter()
            .find(|(known, _)| word.eq_ignore_ascii_case(known))
            .map_or(Self::Altering, |row| row.1)
    }

    /// As a phrase that follows "while".
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Locking => "waiting for the lock of the database",
            Self::Reading => "reading",
            Self::Creating => "creating",
            Self::Altering => "altering",
            Self::Configuring => "setting parameters",
            Self::Granting => "granting",
            Self::Revoking => "revoking",
            Self::Dropping => "dropping",
            Self::Committing => "committing",
        }
    }
}

const FIRST_WORDS: &[(&str, Doing)] = &[
    ("SELECT", Doing::Reading),
    ("WITH", Doing::Reading),
    ("SHOW", Doing::Reading),
    ("CREATE", Doing::Creating),
    ("GRANT", Doing::Granting),
    ("REVOKE", Doing::Revoking),
    ("DROP", Doing::Dropping),
    ("REASSIGN", Doing::Dropping),
];

/// A row of the table: a code or its prefix, the actions (any, if empty), and the class.
struct Rule(&'static str, &'static [Doing], Class);

const ANY: &[Doing] = &[];
/// Actions that may find an existing object.
const MAKING: &[Doing] = &[Doing::Creating, Doing::Altering, Doing::Granting];
/// Actions that may find that the object is already gone.
const REMOVING: &[Doing] = &[Doing::Dropping, Doing::Revoking];

use Class::{Dependency, Human, Permanent, Transient};

/// The first matching row applies, so exceptions precede their rule.
const TABLE: &[Rule] = &[
    // The server or the connection.
    Rule("08", ANY, Transient),                 // connection exceptions
    Rule("57", ANY, Transient),                 // cancelled, shutting down, starting up
    Rule("53", ANY, Transient),                 // too many connections, out of memory, disk full
    Rule("40", ANY, Transient),                 // serialization, deadlock
    Rule("55P02", ANY, Permanent), // a parameter that needs a restart or that nobody can set here
    Rule("55000", &[Doing::Connecting], Human), // the database refuses connections
    Rule("55", ANY, Transient),    // lock not available, object in use
    Rule("25006", ANY, Transient), // read-only: a replica after a failover
    Rule("25P", ANY, Transient),   // the transaction was ended for us
    Rule("26000", ANY, Transient), // a pooler lost our prepared statement
    Rule("72000", ANY, Transient), // snapshot too old
    // "tuple concurrently updated", "cache lookup failed": two writers conflicted. The text does not help, because the
    // server translates it.
    Rule("XX000", ANY, Transient),
    Rule("XX", ANY, Human),         // corrupted data
    Rule("F0", ANY, Human),         // the server's configuration file
    Rule("58P01", ANY, Dependency), // a library or control file that is not installed
    Rule("58", ANY, Transient),     // input/output errors of the server
    // Login and database.
    Rule("28", ANY, Dependency),    // 28000, 28P01: the credentials
    Rule("3D000", ANY, Dependency), // no such database
    Rule("42501", ANY, Human),      // insufficient privilege
    Rule("2BP01", ANY, Human),      // other objects depend on it
    // Another writer was faster: check again.
    Rule("42710", MAKING, Transient), // object exists
    Rule("42P04", MAKING, Transient), // database exists
    Rule("42P06", MAKING, Transient), // schema exists
    Rule("42P07", MAKING, Transient), // table exists
    Rule("42723", MAKING, Transient), // function exists
    Rule("23505", MAKING, Transient), // two CREATEs met in a catalog's index
    Rule("42704", REMOVING, Transient),
    Rule("42P01", REMOVING, Transient),
    Rule("3F000", REMOVING, Transient),
    Rule("42883", REMOVING, Transient),
    // Missing objects: a wrong parameter stays wrong, an object may still be created.
    Rule("42704", &[Doing::Configuring], Permanent),
    Rule("42704", ANY, Dependency), // role, type, …
    Rule("42P01", ANY, Dependency), // table
    Rule("3F000", ANY, Dependency), // schema
    Rule("42883", ANY, Dependency), // function
    Rule("42703", ANY, Dependency), // column
    // Objects in the way.
    Rule("42710", ANY, Human),
    Rule("42P04", ANY, Human),
    Rule("42P06", ANY, Human),
    Rule("42P07", ANY, Human),
    Rule("42723", ANY, Human),
    // Code in the database: triggers, functions.
    Rule("P0", ANY, Human),
    Rule("38", ANY, Human),
    Rule("39", ANY, Human),
    // The request itself.
    Rule("0A000", ANY, Permanent), // not supported, extension not available
    Rule("0L", ANY, Permanent),    // 0LP01: no such privilege on such an object
    Rule("0P000", ANY, Permanent), // invalid role specification
    Rule("22", ANY, Permanent),    // values: 22007, 22008 dates; 22023 parameters
    Rule("23", ANY, Permanent),    // constraints
    Rule("25", ANY, Permanent),    // not in a transaction, or only in one
    Rule("42", ANY, Permanent),    // syntax, 42602 bad name, 42939 reserved name, wrong object type
];

/// The class of an SQLSTATE. Unknown codes are reported to a person and retried slowly.
pub(crate) fn classify(code: &str, doing: Doing) -> Class {
    TABLE
        .iter()
        .find(|Rule(prefix, when, _)| code.starts_with(prefix) && (when.is_empty() || when.contains(&doing)))
        .map_or(Human, |rule| rule.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        use Doing::*;
        let cases = [
            ("08006", Connecting, Transient),
            ("57P01", Reading, Transient),
            ("57P03", Connecting, Transient),
            ("57014", Granting, Transient),
            ("53300", Connecting, Transient),
            ("40001", Committing, Transient),
            ("40P01", Altering, Transient),
            ("55P03", Locking, Transient),
            ("55000", Connecting, Human),
            ("55000", Altering, Transient),
            ("55006", Dropping, Transient),
            ("25006", Creating, Transient),
            ("25P02", Reading, Transient),
            ("25001", Creating, Permanent),
            ("XX000", Granting, Transient),
            ("XX001", Reading, Human),
            ("28P01", Connecting, Dependency),
            ("28000", Connecting, Dependency),
            ("3D000", Connecting, Dependency),
            ("3D000", Granting, Dependency),
            ("42501", Altering, Human),
            ("2BP01", Dropping, Human),
            ("42710", Creating, Transient),
            ("42710", Revoking, Human),
            ("23505", Creating, Transient),
            ("23505", Reading, Permanent),
            ("42704", Granting, Dependency),
            ("42704", Altering, Dependency),
            ("42704", Configuring, Permanent),
            ("42704", Dropping, Transient),
            ("42P01", Granting, Dependency),
            ("3F000", Granting, Dependency),
            ("0LP01", Granting, Permanent),
            ("22023", Configuring, Permanent),
            ("42602", Configuring, Permanent),
            ("42939", Creating, Permanent),
            ("0A000", Creating, Permanent),
            ("22007", Altering, Permanent),
            ("22008", Altering, Permanent),
            ("42601", Creating, Permanent),
            ("P0001", Creating, Human),
            ("58P01", Creating, Dependency),
            ("ZZ999", Reading, Human),
            ("", Reading, Human),
        ];
        for (code, doing, class) in cases {
            assert_eq!(classify(code, doing), class, "{code} while {}", doing.phrase());
        }
    }

    #[test]
    fn every_row_can_be_reached() {
        for (index, Rule(prefix, when, _)) in TABLE.iter().enumerate() {
            let hidden = TABLE[..index].iter().any(|Rule(earlier, earlier_when, _)| {
                prefix.starts_with(earlier)
                    && (earlier_when.is_empty()
                        || (!when.is_empty() && when.iter().all(|doing| earlier_when.contains(doing))))
            });
            assert!(!hidden, "row {index} ({prefix}) is hidden by one above it");
        }
    }

    #[test]
    fn first_words() {
        assert_eq!(Doing::of_sql("create role x"), Doing::Creating);
        assert_eq!(Doing::of_sql("  DROP\nOWNED BY x"), Doing::Dropping);
        assert_eq!(Doing::of_sql("COMMENT ON ROLE x"), Doing::Altering);
        assert_eq!(Doing::of_sql(""), Doing::Altering);
    }
}
