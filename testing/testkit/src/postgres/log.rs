//! The server's log, entry by entry.
//!
//! The backends write the log before they answer, so a test that has its answer finds the entry. (The logging
//! collector, which could write JSON, would lag behind.)

/// `log_line_prefix`: process, user, database, application and SQLSTATE, separated by a character that occurs in none
/// of them.
pub(super) const PREFIX: &str = "\u{1f}%p\u{1f}%u\u{1f}%d\u{1f}%a\u{1f}%e\u{1f}";

/// One message of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEntry {
    /// The process that wrote it.
    pub pid: u32,
    /// The session's user; empty outside sessions.
    pub user: String,
    /// The session's database; empty outside sessions.
    pub database: String,
    /// The session's `application_name`.
    pub application: String,
    /// The SQLSTATE, `00000` for success.
    pub sqlstate: String,
    /// LOG, ERROR, DETAIL, STATEMENT …
    pub severity: String,
    /// The message without the prefix.
    pub message: String,
}

impl LogEntry {
    /// The SQL text, if this entry logs the execution of a statement.
    ///
    /// `execute fetch from` and similar entries do not count as a new statement, and Parse and Bind are not logged at
    /// all.
    pub fn statement(&self) -> Option<&str> {
        if self.severity != "LOG" {
            return None;
        }
        if let Some(sql) = self.message.strip_prefix("statement: ") {
            return Some(sql);
        }
        self.message
            .strip_prefix("execute ")?
            .split_once(": ")
            .map(|(_, sql)| sql)
    }
}

/// Everything a server has logged.
#[derive(Clone, Debug, Default)]
pub struct Log {
    text: String,
    entries: Vec<LogEntry>,
}

impl Log {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut entries: Vec<LogEntry> = Vec::new();
        for line in text.lines() {
            if let Some(entry) = parse_line(line) {
                entries.push(entry);
            } else if let Some(last) = entries.last_mut() {
                // A message of several lines: the server indents all but the first line by a tab.
                last.message.push('\n');
                last.message.push_str(line.strip_prefix('\t').unwrap_or(line));
            }
        }
        Self { text, entries }
    }

    /// The raw text, to search for what it must not contain.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All entries, in order.
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    /// The entries of sessions in one database.
    pub fn of_database(&self, database: &str) -> Vec<LogEntry> {
        self.entries
            .iter()
            .filter(|entry| entry.database == database)
            .cloned()
            .collect()
    }

    /// The statements that the sessions of this application executed, in order.
    pub fn statements_of(&self, application: &str) -> Vec<String> {
        let own = self
            .entries
            .iter()
            .filter(|entry| entry.application == application);
        own.filter_map(LogEntry::statement).map(str::to_owned).collect()
    }

    /// Those of [`Log::statements_of`] that contain more than statements which start with these words. Statements with
    /// a password are not logged.
    pub fn statements_other_than(&self, words: &[&str], application: &str) -> Vec<String> {
        let mut all = self.statements_of(application);
        all.retain(|sql| {
            let mut parts = sql.split(';').map(str::trim).filter(|part| !part.is_empty());
            !parts.all(|part| words.iter().any(|word| part.starts_with(word)))
        });
        all
    }

    /// The statements that sessions in one database executed, in order.
    pub fn statements(&self, database: &str) -> Vec<String> {
        self.of_database(database)
            .iter()
            .filter_map(LogEntry::statement)
            .map(str::to_owned)
            .collect()
    }
}

fn parse_line(line: &str) -> Option<LogEntry> {
    let mut fields = line.strip_prefix('\u{1f}')?.splitn(6, '\u{1f}');
    let mut next = || fields.next().map(str::to_owned);
    let (pid, user, database, application, sqlstate) = (next()?, next()?, next()?, next()?, next()?);
    let rest = next()?;
    let (severity, message) = rest.split_once(":  ")?;
    Some(LogEntry {
        pid: pid.parse().ok()?,
        user,
        database,
        application,
        sqlstate,
        severity: severity.to_owned(),
        message: message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::Log;

    #[test]
    fn entries_keep_their_session_and_their_lines() {
        let log = Log::parse(
            "\u{1f}1\u{1f}\u{1f}\u{1f}\u{1f}00000\u{1f}LOG:  database system is ready\n\
             \u{1f}7\u{1f}ann\u{1f}shop\u{1f}psql\u{1f}00000\u{1f}LOG:  statement: SELECT 1,\n\t  2\n\
             \u{1f}7\u{1f}ann\u{1f}shop\u{1f}psql\u{1f}00000\u{1f}LOG:  execute <unnamed>: SELECT $1\n\
             \u{1f}7\u{1f}ann\u{1f}shop\u{1f}psql\u{1f}00000\u{1f}DETAIL:  Parameters: $1 = '5'\n\
             \u{1f}7\u{1f}ann\u{1f}shop\u{1f}psql\u{1f}42P01\u{1f}ERROR:  no such table\n"
                .as_bytes(),
        );
        assert_eq!(log.statements("shop"), ["SELECT 1,\n  2", "SELECT $1"]);
        assert_eq!(log.statements_of("psql"), log.statements("shop"));
        assert_eq!(log.statements_other_than(&["SELECT"], "psql"), [""; 0]);
        assert_eq!(log.statements_other_than(&["SET"], "psql").len(), 2);
        assert_eq!(log.of_database("shop").len(), 4);
        assert_eq!(log.entries()[4].sqlstate, "42P01");
        assert_eq!(log.entries()[4].user, "ann");
    }
}
