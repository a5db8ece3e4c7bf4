//! Queries with bound values, several in one round trip and in one snapshot.

mod digest;

use std::pin::{Pin, pin};
use std::time::Duration;

use futures::future::{MaybeDone, OptionFuture, maybe_done};
use futures::{TryStreamExt as _, poll};
use tokio::time::Instant;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, RowStream};

use crate::batch::{Begin, Isolation, Prologue};
use crate::error::{Error, FailedStatement, Kind, Secrets};
use crate::session::{Answer, ReadSession};
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

/// Receives the rows one by one, each with the index of its query, in the order of the queries. A large result is never in
/// memory as a whole.
pub(crate) type Sink<'a> = dyn FnMut(usize, Row) + Send + 'a;

/// A query whose text was built, with names in it.
impl From<Statement> for Query {
    fn from(statement: Statement) -> Self {
        Self {
            statement,
            values: Vec::new(),
        }
    }
}

impl ReadSession {
    /// One query, in its own transaction, which only reads.
    pub async fn query(&self, query: &Query) -> Result<Vec<Row>, Error> {
        let query = std::slice::from_ref(query);
        let mut results = if self.reads_by_default() {
            self.pipeline(&Prologue::default(), query, None).await?
        } else {
            self.snapshot(query).await?
        };
        Ok(results.pop().unwrap_or_default())
    }

    /// All queries in one round trip and one snapshot.
    pub async fn snapshot(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Error> {
        let mut answers: Vec<Vec<Row>> = queries.iter().map(|_| Vec::new()).collect();
        self.stream_snapshot(queries, &mut collect(&mut answers)).await?;
        Ok(answers)
    }

    /// The same, but passes each row to `sink`. On an error, rows may be missing.
    pub async fn stream_snapshot(&self, queries: &[Query], sink: &mut Sink<'_>) -> Result<(), Error> {
        let begin = Begin {
            isolation: Isolation::RepeatableRead,
            read_only: true,
            ..Begin::default()
        };
        let prologue = self.prologue(&begin, false);
        self.stream(&prologue, queries, Some("COMMIT"), sink).await
    }

    /// Sends everything before it waits for anything.
    pub(crate) async fn pipeline(
        &self,
        prologue: &Prologue,
        queries: &[Query],
        epilogue: Option<&str>,
    ) -> Result<Vec<Vec<Row>>, Error> {
        let mut answers: Vec<Vec<Row>> = queries.iter().map(|_| Vec::new()).collect();
        self.stream(prologue, queries, epilogue, &mut collect(&mut answers))
            .await?;
        Ok(answers)
    }

    /// Sends everything before it waits for anything, and passes each row to `sink`.
    pub(crate) async fn stream(
        &self,
        prologue: &Prologue,
        queries: &[Query],
        epilogue: Option<&str>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Error> {
        for Query { statement, .. } in queries {
            tracing::debug!(server = %self.target(), database = self.target().database(), %statement, "query");
        }
        let begun = Instant::now();
        let count = prologue.len() + queries.len() + usize::from(epilogue.is_some());
        let text = prologue.text();
        let asked = self.ask(queries.len() + 2);
        let all = async {
            let before =
                OptionFuture::from((prologue.len() > 0).then(|| self.converse(&text, Duration::MAX)));
            let after = OptionFuture::from(epilogue.map(|text| self.converse(text, Duration::MAX)));
            let mut before = pin!(maybe_done(before));
            let mut after = pin!(maybe_done(after));
            let mut started: Vec<_> = queries
                .iter()
                .map(|query| Box::pin(maybe_done(self.start(query))))
                .collect();
            // Each sends its message when it is first polled, and the server answers in the same order.
            let _ = poll!(&mut before);
            for query in &mut started {
                let _ = poll!(query);
            }
            let _ = poll!(&mut after);
            before.as_mut().await;
            let mut failed = None;
            for (index, mut query) in started.into_iter().enumerate() {
                let answer = drain(query.as_mut(), |row| sink(index, row)).await;
                // The first failure in their order: later ones only report that the transaction is aborted.
                failed = failed.or(answer.err().map(|error| (index, error)));
            }
            after.as_mut().await;
            let before = before.as_mut().take_output().flatten();
            (before, failed, after.as_mut().take_output().flatten())
        };
        // There is one limit for all: the last answer waits for the others.
        let answers = tokio::time::timeout(self.answer_timeout(count), all).await;
        let outcome = match answers {
            Err(_) => {
                self.observe(Doing::Reading, count, begun, (false, false));
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
            Ok((_, Some((index, error)), _)) => Err(self.blame(queries, index, &error)),
            Ok((_, None, after)) => match after.and_then(|answer| answer.lost) {
                Some(lost) => Err(lost.into_error(Doing::Reading, self.target(), &Secrets::default())),
                None => Ok(()),
            },
        };
        asked.answered();
        let answered = outcome
            .as_ref()
            .err()
            .is_none_or(|error| error.sqlstate().is_some());
        self.observe(Doing::Reading, count, begun, (outcome.is_ok(), answered));
        outcome
    }

    async fn start(&self, query: &Query) -> Result<RowStream, tokio_postgres::Error> {
        let values = query
            .values
            .iter()
            .map(|(value, of_type)| (&**value as &(dyn ToSql + Sync), of_type.clone()));
        self.driver()
            .query_typed_raw(query.statement.expose_sql(), values)
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

/// A sink that stores all rows.
pub(crate) fn collect(answers: &mut [Vec<Row>]) -> impl FnMut(usize, Row) + Send {
    move |index, row| {
        if let Some(rows) = answers.get_mut(index) {
            rows.push(row);
        }
    }
}

/// Waits for the start of an answer, and passes on its rows.
async fn drain(
    mut query: Pin<&mut MaybeDone<impl Future<Output = Result<RowStream, tokio_postgres::Error>>>>,
    mut take: impl FnMut(Row),
) -> Result<(), tokio_postgres::Error> {
    query.as_mut().await;
    let Some(stream) = query.take_output() else {
        return Ok(());
    };
    let mut rows = pin!(stream?);
    while let Some(row) = rows.try_next().await? {
        take(row);
    }
    Ok(())
}
