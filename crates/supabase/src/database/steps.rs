//! The steps: numbered, each one file of SQL, each run once.
//!
//! A file is one block of PL/pgSQL. What differs between installations (the names of the logins) comes from settings of
//! the transaction, so the text is the same everywhere, and its hash identifies it. A released step is never changed: a
//! correction is a new step. A test keeps the hashes.

mod table;

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use stanchion_postgres::Statement;

use super::isolation::{self, Thing};
use super::roles::Login;

pub(super) use table::{REQUIRED_EXTENSIONS, TABLE};

/// Where a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The project's database.
    Project,
    /// The internal database.
    Internal,
}

/// What happens if a step fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Everything is rolled back.
    Required,
    /// The rest continues; the text names what does not work.
    Optional(&'static str),
}

/// When a step applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// In every project.
    Always,
    /// If the server has the extension.
    Available(&'static str),
    /// If this service is deployed.
    Login(Login),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// Its position, and its key in the record.
    pub(super) number: i32,
    pub(super) name: &'static str,
    pub(super) place: Place,
    pub(super) need: Need,
    pub(super) when: When,
    /// What it reads, calls, completes or creates.
    pub(super) touches: &'static [Thing],
    /// The login that it can run as, without the superuser's privileges.
    pub(super) run_as: Option<Login>,
    sql: &'static str,
    /// Additional settings of this step.
    settings: &'static [(&'static str, &'static str)],
}

/// Transient errors, which a failing optional step does not hide.
const OPTIONAL_END: &str = "\
EXCEPTION WHEN OTHERS THEN
  IF left(SQLSTATE, 2) IN ('40', '53', '57', 'XX') OR SQLSTATE IN ('55P03', '23505') THEN
    RAISE;
  END IF;
  PERFORM set_config('stanchion.skipped', SQLERRM, true);
END $stanchion$";

impl Step {
    /// The hash of everything that determines the step's effect.
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

    pub(super) fn creates_extension(&self) -> bool {
        self.settings
            .iter()
            .any(|(name, _)| *name == "stanchion.extension")
    }

    /// Sets the step's settings and resets those of the one before; runs it, as another role if there is one, and
    /// checks what it found again; records it.
    pub(super) fn statements(&self, seen: &str, roles: Option<&Roles<'_>>) -> Vec<Statement> {
        let [settings, run, record] = self.parts(seen);
        let set = |role: &str| Statement::new("SET LOCAL ROLE ").ident(role);
        let mut all = vec![settings];
        all.extend(roles.map(|roles| set(roles.of_step)));
        all.push(run);
        all.extend(roles.map(|roles| set(roles.of_session)));
        all.extend(isolation::look_again(self));
        all.push(record);
        all
    }

    /// The settings, the step itself and its record.
    pub(super) fn parts(&self, seen: &str) -> [Statement; 3] {
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
            Need::Optional(_) => OPTIONAL_END,
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

/// The role that a step runs as, and the role to reset to.
pub(super) struct Roles<'a> {
    pub(super) of_step: &'a str,
    pub(super) of_session: &'a str,
}

/// Optional extensions, and what does not work without them.
pub(super) fn optional_extensions() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().filter_map(|step| match (step.when, step.need) {
        (When::Available(name), Need::Optional(consequence)) if !REQUIRED_EXTENSIONS.contains(&name) => {
            Some((name, consequence))
        }
        _ => None,
    })
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
