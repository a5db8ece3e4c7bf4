//! Queries with bound values, several in one round trip and in one snapshot.

mod digest;

use std::time::{Duration, Instant};

use futures::future::{OptionFuture, join_all};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::batch::{Begin, Isolation, Prologue};
use crate::error::{Error, FailedStatement, Kind, Secrets};
use crate::session::{Answer, Session};
use crate::sqlstate::Doing;
use crate::statement::Statement;

/// A query and its values. The types are given, which saves the round trip to look them up.
pub struct Query {
    statement: Statement,
    values: Vec<(Box<dyn ToSql + Send + Sync>, Type)>,
}

impl Query {
    /// A query with values `$1`, `$2`, …
    pub fn new(sql: &'static str) -> Self {
        Statement::new(sql).into()
    }

    /// Binds the next value.
    #[must_use]
    pub fn bind(mut self, value: impl ToSql + Send + Sync + 'static, of_type: Type) -> Self {
        self.values.push((Box::new(value), of_type));
        self
    }

    /// Binds a text.
    #[must_use]
    pub fn text(self, value: &str) -> Self {
        self.bind(value.to_owned(), Type::TEXT)
    }

    /// Binds an array of texts, for `= ANY ($1)`.
    #[must_use]
    pub fn texts(self, values: Vec<String>) -> Self {
        self.bind(values, Type::TEXT_ARRAY)
    }
}

/// A query whose text was built, with names in it.
impl From<Statement> for Query {
    fn from(statement: Statement) -> Self {
        Self {
            statement,
            values: Vec::new(),
        }
    }
}

impl Session {
    /// One query, in its own transaction.
    pub async fn query(&self, query: &Query) -> Result<Vec<Row>, Error> {
        let mut results = self
            .pipeline(&Prologue::default(), std::slice::from_ref(query), None)
            .await?;
        Ok(results.pop().unwrap_or_default())
    }

    /// All queries in one round trip and one snapshot.
    pub async fn snapshot(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Error> {
        let begin = Begin {
            isolation: Isolation::RepeatableRead,
            read_only: true,
            ..Begin::default()
        };
        self.pipeline(&begin.prologue(self.timeouts(), false), queries, Some("COMMIT"))
            .await
    }

    /// Sends everything before it waits for anything.
    pub(crate) async fn pipeline(
        &self,
        prologue: &Prologue,
        queries: &[Query],
        epilogue: Option<&str>,
    ) -> Result<Vec<Vec<Row>>, Error> {
        for Query { statement, .. } in queries {
            tracing::debug!(server = %self.target(), database = self.target().database(), %statement, "query");
        }
        let begun = Instant::now();
        let count = prologue.len() + queries.len() + usize::from(epilogue.is_some());
        let text = prologue.text();
        let asked = self.ask(queries.len() + 2);
        // Each sends its message when it is first polled, and they are first polled in this order. There is one limit
        // for all: the last answer waits for the others.
        let before = OptionFuture::from((prologue.len() > 0).then(|| self.converse(&text, Duration::MAX)));
        let during = join_all(queries.iter().map(|query| self.run(query)));
        let after = OptionFuture::from(epilogue.map(|text| self.converse(text, Duration::MAX)));
        let all = async { futures::join!(before, during, after) };
        let answers = tokio::time::timeout(self.patience(count), all).await;
        let outcome = match answers {
            Err(_) => {
                self.observe(Doing::Reading, count, begun, false);
                let cause = "the queries took longer than they may; they were cancelled";
                return Err(Error::new(Kind::TimedOut, Doing::Reading, self.target(), cause));
            }
            Ok((
                Some(Answer {
                    affected,
                    lost: Some(lost),
                    ..
                }),
                ..,
            )) => Err(self.not_begun(prologue, affected.len(), lost)),
            // The first failure in their order: later ones only report that the transaction is aborted.
            Ok((_, results, after)) => results
                .into_iter()
                .enumerate()
                .map(|(index, result)| result.map_err(|error| self.blame(queries, index, &error)))
                .collect::<Result<Vec<_>, _>>()
                .and_then(|rows| match after.and_then(|answer| answer.lost) {
                    Some(lost) => Err(lost.into_error(Doing::Reading, self.target(), &Secrets::default())),
                    None => Ok(rows),
                }),
        };
        asked.answered();
        self.observe(Doing::Reading, count, begun, outcome.is_ok());
        outcome
    }

    async fn run(&self, query: &Query) -> Result<Vec<Row>, tokio_postgres::Error> {
        let values: Vec<(&(dyn ToSql + Sync), Type)> = query
            .values
            .iter()
            .map(|(value, of_type)| (&**value as &(dyn ToSql + Sync), of_type.clone()))
            .collect();
        self.client()
            .query_typed(query.statement.expose_sql(), &values)
            .await
    }

    fn blame(&self, queries: &[Query], index: usize, error: &tokio_postgres::Error) -> Error {
        let statement = queries.get(index).map(|query| &query.statement);
        let secrets = Secrets::new(statement.into_iter().flat_map(Statement::secrets));
        let text = statement.map(ToString::to_string).unwrap_or_default();
        self.explain(Doing::Reading, error, &secrets)
            .with_statement(FailedStatement {
                index,
                of: queries.len(),
                text,
            })
    }
}
