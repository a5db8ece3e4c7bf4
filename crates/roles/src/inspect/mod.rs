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

use stanchion_postgres::{Begin, Isolation, Query, Row, Session, Transaction};

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
pub async fn inspect(session: &mut Session, needs: &Needs) -> Result<Facts, Error> {
    if needs.passwords.is_empty() {
        let (subjects, queries): (Vec<Subject>, Vec<Query>) =
            queries(needs, session.version()).into_iter().unzip();
        let mut decoding = Decoding::new(subjects);
        session
            .stream_snapshot(&queries, &mut |index, row| decoding.take(index, &row))
            .await?;
        return Ok(decoding.finish()?.finish());
    }
    let begin = Begin {
        isolation: Isolation::RepeatableRead,
        read_only: true,
        ..Begin::default()
    };
    let (transaction, facts) = begin_and_inspect(session, &begin, needs).await?;
    transaction.roll_back().await;
    Ok(facts)
}

/// Begins a transaction and inspects in it, so that the changes can use the same one.
pub async fn begin_and_inspect<'s>(
    session: &'s mut Session,
    begin: &Begin,
    needs: &Needs,
) -> Result<(Transaction<'s>, Facts), Error> {
    let (subjects, queries): (Vec<Subject>, Vec<Query>) =
        queries(needs, session.version()).into_iter().unzip();
    let mut decoding = Decoding::new(subjects);
    let transaction = session
        .begin_and_stream(begin, &queries, &mut |index, row| decoding.take(index, &row))
        .await?;
    let mut decoder = decoding.finish()?;
    if !needs.passwords.is_empty() && decoder.server_facts().reads_passwords {
        let rows = transaction.read(&[verifiers(needs)]).await?;
        decoder.verifiers(rows.first().map_or(&[], Vec::as_slice))?;
    }
    Ok((transaction, decoder.finish()))
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
    session: &mut Session,
    needs: &Needs,
) -> Result<(Facts, InspectionDigest), Error> {
    let begin = Begin {
        isolation: Isolation::RepeatableRead,
        read_only: true,
        ..Begin::default()
    };
    let version = session.version();
    let (transaction, facts) = begin_and_inspect(session, &begin, needs).await?;
    let verifiers = !needs.passwords.is_empty() && facts.server.reads_passwords;
    let rows = transaction.read(&[digest(needs, version, verifiers)]).await?;
    transaction.roll_back().await;
    let text = text_of(rows.first().map_or(&[], Vec::as_slice))?;
    Ok((facts, InspectionDigest { text, verifiers }))
}

/// Whether everything that the inspection read is unchanged. One statement.
pub async fn is_unchanged(
    session: &Session,
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
    fn new(subjects: Vec<Subject>) -> Self {
        Self {
            subjects,
            decoder: Ok(Decoder::default()),
        }
    }

    /// Decodes a row, unless an earlier row failed.
    fn take(&mut self, index: usize, row: &Row) {
        if let (Ok(decoder), Some(subject)) = (&mut self.decoder, self.subjects.get(index))
            && let Err(unreadable) = decoder.add(*subject, row)
        {
            self.decoder = Err(unreadable);
        }
    }

    fn finish(self) -> Result<Decoder, Unreadable> {
        self.decoder
    }
}
