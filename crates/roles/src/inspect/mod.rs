//! Inspects the database: one snapshot, one round trip (and a second one for password verifiers).

mod acl;
mod decode;
mod everything;
mod needs;
mod queries;
mod sql;

pub use decode::Unreadable;
pub use everything::inspect_everything;
pub use needs::Needs;

use stanchion_postgres::{Begin, Query, ReadSession, ReadTransaction, Row, Session, Transaction};

use crate::facts::Facts;
use decode::Decoder;
use queries::{Subject, queries, verifiers};

/// Why an inspection failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// PostgreSQL returned an error, or did not answer.
    #[error(transparent)]
    Postgres(#[from] stanchion_postgres::Error),
    /// PostgreSQL returned something that this version cannot read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// Inspects in a read-only transaction.
pub async fn inspect(session: &mut ReadSession, needs: &Needs) -> Result<Facts, Error> {
    if needs.passwords.is_empty() {
        let (mut decoding, queries) = Decoding::of(needs, session.version());
        session
            .stream_snapshot(&queries, &mut |index, row| decoding.take(index, &row))
            .await?;
        return Ok(decoding.decoder?.finish());
    }
    let (transaction, facts) = begin_reading(session, needs).await?;
    transaction.roll_back().await;
    Ok(facts)
}

/// Begins a read-only transaction and inspects in it.
async fn begin_reading<'s>(
    session: &'s mut ReadSession,
    needs: &Needs,
) -> Result<(ReadTransaction<'s>, Facts), Error> {
    let (mut decoding, queries) = Decoding::of(needs, session.version());
    let transaction = session
        .begin_reading(&queries, &mut |index, row| decoding.take(index, &row))
        .await?;
    let facts = decoding.finish(&transaction, needs).await?;
    Ok((transaction, facts))
}

/// Begins a transaction and inspects in it, so that the changes can use the same one.
pub(crate) async fn begin_and_inspect<'s>(
    session: &'s mut Session,
    begin: &Begin,
    needs: &Needs,
) -> Result<(Transaction<'s>, Facts), Error> {
    let (mut decoding, queries) = Decoding::of(needs, session.version());
    let transaction = session
        .begin_and_stream(begin, &queries, &mut |index, row| decoding.take(index, &row))
        .await?;
    let facts = decoding.finish(&transaction, needs).await?;
    Ok((transaction, facts))
}

/// A digest that shows whether a database is unchanged since an inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectionDigest {
    text: String,
    /// Whether the digest includes password verifiers.
    verifiers: bool,
}

/// Inspects and computes the digest, in one snapshot.
pub async fn inspect_with_digest(
    session: &mut ReadSession,
    needs: &Needs,
) -> Result<(Facts, InspectionDigest), Error> {
    let version = session.version();
    let (transaction, facts) = begin_reading(session, needs).await?;
    let verifiers = !needs.passwords.is_empty() && facts.server.reads_passwords;
    let rows = transaction.read(&[digest(needs, version, verifiers)]).await?;
    transaction.roll_back().await;
    let text = text_of(rows.first().map_or(&[], Vec::as_slice))?;
    Ok((facts, InspectionDigest { text, verifiers }))
}

/// Whether everything that the inspection read is unchanged. One statement.
pub async fn is_unchanged(
    session: &ReadSession,
    needs: &Needs,
    inspected: &InspectionDigest,
) -> Result<bool, Error> {
    let query = digest(needs, session.version(), inspected.verifiers);
    Ok(text_of(&session.query(&query).await?)? == inspected.text)
}

fn digest(needs: &Needs, version: u32, with_verifiers: bool) -> Query {
    let all = queries(needs, version).into_iter().map(|(_, query)| query);
    Query::digest(all.chain(with_verifiers.then(|| verifiers(needs))).collect())
}

fn text_of(rows: &[Row]) -> Result<String, Unreadable> {
    let text = rows.first().map(|row| row.try_get(0)).transpose();
    Ok(text
        .map_err(|error| Unreadable::new("digest", &error))?
        .unwrap_or_default())
}

/// Decodes each row when it arrives. A row is larger than its facts, and there can be some hundred thousand rows.
struct Decoding {
    subjects: Vec<Subject>,
    decoder: Result<Decoder, Unreadable>,
}

impl Decoding {
    /// The queries for these needs, and what decodes their rows.
    fn of(needs: &Needs, version: u32) -> (Self, Vec<Query>) {
        let (subjects, queries) = queries(needs, version).into_iter().unzip();
        let decoder = Ok(Decoder::default());
        (Self { subjects, decoder }, queries)
    }

    /// Decodes a row, unless an earlier row failed.
    fn take(&mut self, index: usize, row: &Row) {
        if let (Ok(decoder), Some(subject)) = (&mut self.decoder, self.subjects.get(index))
            && let Err(unreadable) = decoder.add(*subject, row)
        {
            self.decoder = Err(unreadable);
        }
    }

    /// The facts, after reading the verifiers in the same snapshot, if they are needed and can be read.
    async fn finish(self, transaction: &ReadTransaction<'_>, needs: &Needs) -> Result<Facts, Error> {
        let mut decoder = self.decoder?;
        if !needs.passwords.is_empty() && decoder.server_facts().reads_passwords {
            let rows = transaction.read(&[verifiers(needs)]).await?;
            decoder.verifiers(rows.first().map_or(&[], Vec::as_slice))?;
        }
        Ok(decoder.finish())
    }
}
