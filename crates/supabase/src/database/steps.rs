//! The steps: numbered, each one file of SQL, each run once.
//!
//! A file is one block of PL/pgSQL. What differs between installations (the names of the logins) reaches it as
//! settings of the transaction, so the text is the same everywhere, and its hash says which text was run. A step that
//! has been released is never changed: a correction is a new step. A test keeps the hashes.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use stanchion_postgres::Statement;

use super::roles::Login;

/// Where a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the project's database.
    Project,
    /// In the database of analytics and pooler.
    Internal,
}

/// What becomes of the rest when a step fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing works without it: all is rolled back.
    Required,
    /// The rest works without it; this is what does not.
    Optional(&'static str),
}

/// Whether a step is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// In every project.
    Always,
    /// Where the server has the extension.
    Available(&'static str),
    /// Where this service is deployed.
    Login(Login),
}

/// One step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// Its place in the order, and its key in the record.
    pub(super) number: i32,
    pub(super) name: &'static str,
    pub(super) place: Place,
    pub(super) need: Need,
    pub(super) when: When,
    sql: &'static str,
    /// Settings that this step has for itself.
    settings: &'static [(&'static str, &'static str)],
}

const STEP: Step = Step {
    number: 0,
    name: "",
    place: Place::Project,
    need: Need::Required,
    when: When::Always,
    sql: "",
    settings: &[],
};

const EXTENSION: &str = include_str!("steps/0030_extension.sql");
const INTERNAL_SCHEMA: &str = include_str!("steps/1010_internal_schema.sql");

/// A step that creates an extension.
macro_rules! extension {
    ($number:literal, $name:literal, $need:expr, $schema:literal) => {
        Step {
            number: $number,
            name: concat!("extension ", $name),
            need: $need,
            when: When::Available($name),
            sql: EXTENSION,
            settings: &[
                ("stanchion.extension", $name),
                ("stanchion.extension_schema", $schema),
            ],
            ..STEP
        }
    };
}

use Need::Optional;

/// Extensions without which nothing works; they come with PostgreSQL's contrib.
pub(super) const REQUIRED_EXTENSIONS: &[&str] = &["pgcrypto", "uuid-ossp", "pg_stat_statements"];

/// Extensions that are used where the server has them, and what does not work without.
pub(super) const OPTIONAL_EXTENSIONS: &[(&str, &str)] = &[
    ("pg_net", "database webhooks do not work"),
    ("pgjwt", "SQL functions for signing tokens are missing"),
    ("pg_graphql", "the GraphQL API answers that it is not enabled"),
    ("supabase_vault", "secrets cannot be kept in the database"),
];

/// The table, in the order of execution.
pub(super) const TABLE: &[Step] = &[
    Step {
        number: 10,
        name: "memberships",
        sql: include_str!("steps/0010_memberships.sql"),
        ..STEP
    },
    Step {
        number: 11,
        name: "predefined memberships",
        need: Optional("Studio cannot see the statements of other sessions, nor end them"),
        sql: include_str!("steps/0011_predefined_memberships.sql"),
        ..STEP
    },
    Step {
        number: 20,
        name: "schemas",
        sql: include_str!("steps/0020_schemas.sql"),
        ..STEP
    },
    Step {
        number: 21,
        name: "handover",
        sql: include_str!("steps/0021_handover.sql"),
        ..STEP
    },
    Step {
        number: 22,
        name: "history of auth",
        sql: include_str!("steps/0022_auth_history.sql"),
        ..STEP
    },
    extension!(30, "pgcrypto", Need::Required, "extensions"),
    extension!(31, "uuid-ossp", Need::Required, "extensions"),
    extension!(
        32,
        "pg_stat_statements",
        Optional("Studio has no figures about queries"),
        "extensions"
    ),
    Step {
        number: 40,
        name: "functions of auth",
        sql: include_str!("steps/0040_auth_functions.sql"),
        ..STEP
    },
    Step {
        number: 50,
        name: "grants",
        sql: include_str!("steps/0050_schema_grants.sql"),
        ..STEP
    },
    Step {
        number: 51,
        name: "default privileges",
        sql: include_str!("steps/0051_default_privileges.sql"),
        ..STEP
    },
    Step {
        number: 60,
        name: "settings of roles",
        sql: include_str!("steps/0060_settings.sql"),
        ..STEP
    },
    Step {
        number: 70,
        name: "publication",
        sql: include_str!("steps/0070_publication.sql"),
        ..STEP
    },
    Step {
        number: 71,
        name: "parameter of realtime",
        need: Optional("Realtime cannot follow changes of tables"),
        sql: include_str!("steps/0071_realtime_parameter.sql"),
        ..STEP
    },
    Step {
        number: 80,
        name: "schema reload",
        need: Optional("after a change of the schema, say NOTIFY pgrst, 'reload schema'"),
        sql: include_str!("steps/0080_schema_reload.sql"),
        ..STEP
    },
    Step {
        number: 81,
        name: "access to extensions",
        need: Optional("pg_cron, pg_net and pg_graphql can be used by their owner only"),
        sql: include_str!("steps/0081_extension_access.sql"),
        ..STEP
    },
    Step {
        number: 82,
        name: "triggers for extensions",
        need: Optional(
            "an extension that is created later must be opened by hand: SELECT _stanchion.open_extension(NAME)",
        ),
        sql: include_str!("steps/0082_extension_triggers.sql"),
        ..STEP
    },
    Step {
        number: 90,
        name: "graphql",
        sql: include_str!("steps/0090_graphql.sql"),
        ..STEP
    },
    // After the triggers, which open them.
    extension!(
        91,
        "pg_net",
        Optional("database webhooks do not work"),
        "extensions"
    ),
    extension!(
        92,
        "pgjwt",
        Optional("SQL functions for signing tokens are missing"),
        "extensions"
    ),
    extension!(
        93,
        "pg_graphql",
        Optional("the GraphQL API answers that it is not enabled"),
        ""
    ),
    extension!(
        94,
        "supabase_vault",
        Optional("secrets cannot be kept in the database"),
        ""
    ),
    Step {
        number: 100,
        name: "webhooks",
        sql: include_str!("steps/0100_webhooks.sql"),
        ..STEP
    },
    Step {
        number: 110,
        name: "pooler",
        need: Optional("the pooler lets nobody in"),
        when: When::Login(Login::PoolerAuth),
        sql: include_str!("steps/0110_pooler.sql"),
        ..STEP
    },
    Step {
        number: 1010,
        name: "schema of analytics",
        place: Place::Internal,
        when: When::Login(Login::Analytics),
        sql: INTERNAL_SCHEMA,
        settings: &[
            ("stanchion.schema", "_analytics"),
            ("stanchion.schema_owner", Login::Analytics.setting()),
        ],
        ..STEP
    },
    Step {
        number: 1011,
        name: "schema of the pooler",
        place: Place::Internal,
        when: When::Login(Login::Pooler),
        sql: INTERNAL_SCHEMA,
        settings: &[
            ("stanchion.schema", "_supavisor"),
            ("stanchion.schema_owner", Login::Pooler.setting()),
        ],
        ..STEP
    },
];

/// What a failing optional step does not hide: these pass by themselves.
const OPTIONAL_END: &str = "\
EXCEPTION WHEN OTHERS THEN
  IF left(SQLSTATE, 2) IN ('40', '53', '57', 'XX') OR SQLSTATE IN ('55P03', '23505') THEN
    RAISE;
  END IF;
  PERFORM set_config('stanchion.skipped', SQLERRM, true);
END $stanchion$";

impl Step {
    /// Of everything that decides what the step does.
    pub(super) fn hash(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.sql);
        for (name, value) in self.settings {
            hash.update(format!("\0{name}\0{value}"));
        }
        hash.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Sets what the step needs and forgets what one before it said; runs it; records it.
    pub(super) fn statements(&self, seen: &str) -> [Statement; 3] {
        let settings = self.settings.iter().fold(
            Statement::new("SELECT pg_catalog.set_config('stanchion.skipped', '', true)"),
            |statement, (name, value)| {
                statement
                    .sql(", pg_catalog.set_config(")
                    .literal(name)
                    .sql(", ")
                    .literal(value)
                    .sql(", true)")
            },
        );
        let end = match self.need {
            Need::Required => "END $stanchion$",
            Optional(_) => OPTIONAL_END,
        };
        let run = Statement::new("DO $stanchion$ BEGIN\n").sql(self.sql).sql(end);
        let record =
            Statement::new("INSERT INTO _stanchion.steps AS s (number, name, hash, skipped, seen) SELECT ")
                .number(self.number.into())
                .sql(", ")
                .literal(self.name)
                .sql(", ")
                .literal(&self.hash())
                .sql(", nullif(pg_catalog.current_setting('stanchion.skipped'), ''), ")
                .literal(seen)
                .sql(
                    " ON CONFLICT (number) DO UPDATE SET hash = excluded.hash, skipped = excluded.skipped, \
                  seen = excluded.seen, run_at = excluded.run_at, run_by = excluded.run_by",
                );
        [settings, run, record]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_ascend() {
        assert!(TABLE.windows(2).all(|pair| pair[0].number < pair[1].number));
    }

    /// A released step is never changed; add one with a new number instead.
    #[test]
    fn released_steps_stay_as_they_are() {
        let lines: Vec<_> = TABLE
            .iter()
            .map(|step| format!("{:04} {} {}", step.number, &step.hash()[..16], step.name))
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn no_step_can_end_its_own_quoting() {
        for step in TABLE {
            assert!(!step.sql.contains("$stanchion$"), "{}", step.name);
        }
    }
}
