//! Makes a role so: one transaction a database, under the database's lock, with what differs then.

use stanchion_kernel::Problem;
use stanchion_postgres::lock::ROLES;
use stanchion_postgres::{Begin, Pooled, Statement, Target as Address, Transaction};

use super::Applied;
use crate::setup::{Setup, TURN};
use crate::user::catalog::{Catalog, Question};
use crate::user::contents::{self, Contents};
use crate::user::observe::{self, Present, invalid, looks_inside, question, schemas_of};
use crate::user::passwords::Passwords;
use crate::user::plan::{Change, database, grants, memberships, ownership, parameters};
use crate::user::target::Wanted;

/// Makes it so, database by database; the role itself comes with the first.
pub async fn make(
    setup: &Setup,
    wanted: &Wanted,
    present: &Present,
    applied: &mut Applied,
) -> Result<(), Problem> {
    let admin = &present.server.target;
    let exists = present.catalog.databases.contains_key(&wanted.database);
    let home = if exists {
        admin.with_database(&wanted.database).map_err(invalid)?
    } else {
        admin.clone()
    };
    let mut pass = Pass {
        setup,
        wanted,
        passwords: &present.passwords,
        held: Vec::new(),
        applied,
    };
    pass.in_database(&home, true).await?;
    if !exists {
        pass.create_database(admin, &present.catalog).await?;
    }
    for name in question(wanted).databases {
        if name != home.database() {
            pass.in_database(&admin.with_database(&name).map_err(invalid)?, false)
                .await?;
        }
    }
    pass.held.extend(memberships::applied(&wanted.member_of));
    pass.held.extend(parameters::applied(&wanted.role.parameters));
    let held = std::mem::take(&mut pass.held);
    applied.grants = Some(held);
    applied.password_set = present.passwords.is_changing();
    end_sessions(setup, admin, wanted, &present.passwords, applied).await
}

struct Pass<'a> {
    setup: &'a Setup,
    wanted: &'a Wanted,
    passwords: &'a Passwords,
    /// What the role holds because of us, as far as the pass has come.
    held: Vec<stanchion_api::user::AppliedGrant>,
    applied: &'a mut Applied,
}

/// What a transaction sees.
struct View {
    catalog: Catalog,
    contents: Contents,
}

impl Pass<'_> {
    /// One transaction: look again under the lock, change what differs, look whether it is so.
    async fn in_database(&mut self, address: &Address, with_role: bool) -> Result<(), Problem> {
        let (_turn, mut session) = match self.setup.pools.exclusive(address, TURN).await {
            // Dropped by hand: nothing is left in it that could be taken back.
            Err(error) if error.sqlstate() == Some("3D000") && !self.is_wanted(address) => return Ok(()),
            other => other?,
        };
        let begin = Begin {
            lock: Some(ROLES),
            ..Begin::default()
        };
        let question = question(self.wanted);
        let (mut transaction, rows) = session.begin(&begin, &question.queries()).await?;
        let view = self.view(&transaction, &question, &rows, address).await?;
        let changes = self.changes(&view, address, with_role)?;
        if changes.is_empty() {
            transaction.roll_back().await;
        } else {
            let statements: Vec<Statement> = changes.iter().map(|change| change.statement.clone()).collect();
            transaction.apply(&statements).await?;
            let rows = transaction.read(&question.queries()).await?;
            let after = self.view(&transaction, &question, &rows, address).await?;
            self.verify(&after, address, with_role)?;
            self.note(&after, with_role);
            transaction.commit(&[]).await?;
            self.applied
                .changed
                .extend(changes.into_iter().map(|change| change.what));
            self.held.extend(self.grants(&after, address));
            return Ok(());
        }
        self.note(&view, with_role);
        self.held.extend(self.grants(&view, address));
        Ok(())
    }

    fn is_wanted(&self, address: &Address) -> bool {
        self.wanted.databases.contains_key(address.database())
    }

    async fn view(
        &self,
        transaction: &Transaction<'_>,
        question: &Question,
        rows: &[Vec<stanchion_postgres::Row>],
        address: &Address,
    ) -> Result<View, Problem> {
        let catalog = question.answer(rows)?;
        let schemas = schemas_of(self.wanted, address.database());
        let contents = if looks_inside(self.wanted, address.database(), &schemas) {
            contents::answer(
                &transaction
                    .read(&contents::queries(&self.wanted.username, &schemas))
                    .await?,
            )?
        } else {
            Contents::default()
        };
        Ok(View { catalog, contents })
    }

    fn changes(&self, view: &View, address: &Address, with_role: bool) -> Result<Vec<Change>, Problem> {
        let mut changes = Vec::new();
        if with_role {
            changes.extend(ownership::role_changes(
                self.wanted,
                &view.catalog,
                self.passwords,
            )?);
        }
        let name = address.database();
        if let Some(facts) = view.catalog.databases.get(name) {
            changes.extend(match self.wanted.databases.get(name) {
                Some(wish) => database::diff(name, self.wanted, wish, facts, &view.contents),
                None => database::leave(name, self.wanted, facts, &view.contents),
            });
        }
        Ok(changes)
    }

    /// A GRANT without the right to grant is a warning to PostgreSQL, and no grant. Nothing is committed that
    /// is not so afterwards.
    fn verify(&self, after: &View, address: &Address, with_role: bool) -> Result<(), Problem> {
        let done = Passwords::default();
        let settled = Pass {
            setup: self.setup,
            wanted: self.wanted,
            passwords: &done,
            held: Vec::new(),
            applied: &mut Applied::default(),
        };
        let left = settled.changes(after, address, with_role)?;
        // Schemas that were made in this transaction have owners only now: their default privileges come next.
        let left: Vec<&Change> = left.iter().filter(|change| !is_follow_up(change)).collect();
        let Some(first) = left.first() else { return Ok(()) };
        Err(Problem::human(
            "InsufficientPrivilege",
            format!(
                "the administrator {} cannot change this in database {}: {} (it took effect for nobody); give it the right to",
                after.catalog.server.role,
                address.database(),
                first.what,
            ),
        ))
    }

    fn grants(&self, view: &View, address: &Address) -> Vec<stanchion_api::user::AppliedGrant> {
        let name = address.database();
        match (self.wanted.databases.get(name), view.catalog.databases.get(name)) {
            (Some(wish), Some(facts)) => {
                grants::wanted(name, &self.wanted.username, wish, facts, &view.contents)
            }
            _ => Vec::new(),
        }
    }

    fn note(&mut self, view: &View, with_role: bool) {
        if with_role && let Some(role) = &view.catalog.role {
            self.applied.oid = Some(role.oid);
        }
    }

    /// Outside a transaction, as PostgreSQL wants it. A crash after it leaves a database that is simply there.
    async fn create_database(&mut self, admin: &Address, catalog: &Catalog) -> Result<(), Problem> {
        let Some(change) = database::creation(self.wanted, catalog)? else {
            return Ok(());
        };
        let (_turn, mut session): (_, Pooled) = self.setup.pools.exclusive(admin, TURN).await?;
        session.execute(&change.statement).await?;
        self.applied.changed.push(change.what);
        self.applied.created.push(stanchion_api::user::AppliedDatabase {
            name: self.wanted.database.clone(),
            created: true,
        });
        Ok(())
    }
}

/// Whether this can only be done after what was just done.
fn is_follow_up(change: &Change) -> bool {
    change
        .statement
        .to_string()
        .starts_with("ALTER DEFAULT PRIVILEGES")
}

/// A stolen session outlives a password: where it is asked for, it ends.
async fn end_sessions(
    setup: &Setup,
    admin: &Address,
    wanted: &Wanted,
    passwords: &Passwords,
    applied: &mut Applied,
) -> Result<(), Problem> {
    if !(passwords.terminates && applied.password_set && passwords.rotated.is_some()) || passwords.is_dual() {
        return Ok(());
    }
    let session = setup.pools.get(admin).await?;
    let ended = observe::terminate(&session, &wanted.username).await?;
    applied.changed.push(format!("{ended} sessions ended"));
    Ok(())
}
