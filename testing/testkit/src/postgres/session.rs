//! Sessions of the administrator or of any other user.

use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::{ADMIN, ADMIN_PASSWORD, server::Postgres, sessions::Sessions};

/// The rows of an answer, each value as text.
pub type Rows = Vec<Vec<Option<String>>>;

impl Postgres {
    /// The administrator's URL of a database.
    pub fn url(&self, database: &str) -> String {
        self.url_of(ADMIN, ADMIN_PASSWORD, database)
    }

    /// The URL of a database for any user.
    pub fn url_of(&self, user: &str, password: &str, database: &str) -> String {
        let [user, password, database] = [user, password, database].map(escape);
        format!(
            "postgresql://{user}:{password}@127.0.0.1:{}/{database}",
            self.port()
        )
    }

    /// Logs in without TLS.
    pub async fn connect(
        &self,
        user: &str,
        password: &str,
        database: &str,
    ) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::Config::new()
            .host("127.0.0.1")
            .port(self.port())
            .user(user)
            .password(password)
            .dbname(database)
            .connect(NoTls)
            .await?;
        // Ends with the client; the client also reports its error.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Runs statements as administrator.
    pub async fn execute(&self, database: &str, sql: &str) {
        self.query(database, sql).await;
    }

    /// Runs statements as administrator and returns all their rows.
    pub async fn query(&self, database: &str, sql: &str) -> Rows {
        self.try_query(database, sql)
            .await
            .unwrap_or_else(|error| panic!("{self:?}, database {database}: {sql}: {}", chain(&error)))
    }

    /// [`Postgres::query`] for statements that are expected to fail.
    pub async fn try_query(&self, database: &str, sql: &str) -> Result<Rows, tokio_postgres::Error> {
        let kept = self.sessions.as_ref().filter(|_| database == "postgres");
        let client = match kept.and_then(Sessions::take) {
            Some(client) => client,
            None => self.connect(ADMIN, ADMIN_PASSWORD, database).await?,
        };
        let messages = client.simple_query(sql).await?;
        if let Some(kept) = kept {
            kept.keep(client);
        }
        Ok(messages
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(
                    (0..row.len())
                        .map(|column| row.get(column).map(str::to_owned))
                        .collect(),
                ),
                _ => None,
            })
            .collect())
    }

    /// The first value of the first row, if there is one and it is not null.
    pub async fn scalar(&self, database: &str, sql: &str) -> Option<String> {
        self.query(database, sql)
            .await
            .into_iter()
            .flatten()
            .next()
            .flatten()
    }
}

/// Percent-encodes all characters except those that a URL allows everywhere.
fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// tokio-postgres prints only "db error"; the server's message is in the source.
fn chain(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(
        || error.to_string(),
        |source| format!("{error}: {}", chain(source)),
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn urls_escape_what_would_end_a_part() {
        assert_eq!(super::escape("p@ss/w:rd é"), "p%40ss%2Fw%3Ard%20%C3%A9");
        assert_eq!(super::escape("plain-_.~9"), "plain-_.~9");
    }
}
