//! SQL as words with colours, and as a list of differences. For reading only: nothing here is executed.

use stanchion_fleet::sql;

/// What a piece of SQL is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Keyword,
    Text,
    Name,
    Number,
    Comment,
    Other,
}

/// The words that are highlighted.
const KEYWORDS: &[&str] = &[
    "ADMIN",
    "ALL",
    "ALTER",
    "AND",
    "AS",
    "AUTHORIZATION",
    "BEGIN",
    "BY",
    "BYPASSRLS",
    "CASCADE",
    "COLUMN",
    "COMMENT",
    "COMMIT",
    "CONNECT",
    "CONNECTION",
    "CREATE",
    "CREATEDB",
    "CREATEROLE",
    "DATABASE",
    "DEFAULT",
    "DELETE",
    "DO",
    "DROP",
    "ELSE",
    "END",
    "EXECUTE",
    "EXISTS",
    "FALSE",
    "FOR",
    "FOREIGN",
    "FROM",
    "FUNCTION",
    "FUNCTIONS",
    "GRANT",
    "GRANTED",
    "IF",
    "IN",
    "INHERIT",
    "INSERT",
    "INTO",
    "IS",
    "LANGUAGE",
    "LIMIT",
    "LOGIN",
    "MAINTAIN",
    "MATERIALIZED",
    "NOBYPASSRLS",
    "NOCREATEDB",
    "NOCREATEROLE",
    "NOINHERIT",
    "NOLOGIN",
    "NOREPLICATION",
    "NOSUPERUSER",
    "NOT",
    "NULL",
    "ON",
    "OPTION",
    "OR",
    "OWNED",
    "OWNER",
    "PASSWORD",
    "PRIVILEGES",
    "PROCEDURE",
    "PUBLIC",
    "REASSIGN",
    "REFERENCES",
    "REPLICATION",
    "RESET",
    "RESTRICT",
    "REVOKE",
    "ROLE",
    "ROUTINE",
    "ROUTINES",
    "SCHEMA",
    "SCHEMAS",
    "SELECT",
    "SEQUENCE",
    "SEQUENCES",
    "SERVER",
    "SET",
    "SUPERUSER",
    "TABLE",
    "TABLES",
    "TEMPORARY",
    "THEN",
    "TO",
    "TRIGGER",
    "TRUE",
    "TRUNCATE",
    "TYPE",
    "TYPES",
    "UNTIL",
    "UPDATE",
    "USAGE",
    "USER",
    "USING",
    "VALID",
    "VALUES",
    "VIEW",
    "WHERE",
    "WITH",
    "WRAPPER",
];

/// The tokens together are the whole text, whatever it is.
pub(crate) fn tokens(text: &str) -> Vec<(Token, &str)> {
    let all = sql::tokens(text).into_iter();
    all.map(|(kind, text)| (colour(kind, text), text)).collect()
}

fn colour(kind: sql::Token, text: &str) -> Token {
    match kind {
        sql::Token::Text => Token::Text,
        sql::Token::Number => Token::Number,
        sql::Token::Comment => Token::Comment,
        sql::Token::Other => Token::Other,
        sql::Token::Word if KEYWORDS.binary_search(&text.to_uppercase().as_str()).is_ok() => Token::Keyword,
        sql::Token::Word | sql::Token::Quoted => Token::Name,
    }
}

/// What a statement does to what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Add,
    Remove,
    Modify,
}

/// A statement, its effect, and the role that it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) effect: Effect,
    pub(crate) role: Option<String>,
    pub(crate) text: String,
}

/// The differences to what is there: the statements of a plan, without comments and the transaction around them.
pub(crate) fn changes(sql: &str) -> Vec<Change> {
    let all = tokens(sql);
    all.split(|(kind, text)| *kind == Token::Other && *text == ";")
        .filter_map(change)
        .collect()
}

fn change(statement: &[(Token, &str)]) -> Option<Change> {
    let words: Vec<(Token, &str)> = statement
        .iter()
        .filter(|(kind, text)| *kind != Token::Comment && !text.trim().is_empty())
        .copied()
        .collect();
    let upper = |at: usize| words.get(at).map(|(_, word)| word.to_uppercase());
    let has = |wanted: &str| {
        words
            .iter()
            .any(|(kind, word)| *kind == Token::Keyword && word.eq_ignore_ascii_case(wanted))
    };
    let is_default = upper(0).as_deref() == Some("ALTER") && upper(1).as_deref() == Some("DEFAULT");
    let effect = match upper(0)?.as_str() {
        "BEGIN" | "COMMIT" => return None,
        "CREATE" | "GRANT" => Effect::Add,
        "DROP" | "REVOKE" => Effect::Remove,
        "ALTER" if is_default && has("REVOKE") => Effect::Remove,
        "ALTER" if is_default => Effect::Add,
        _ => Effect::Modify,
    };
    let text: String = statement
        .iter()
        .filter(|(kind, _)| *kind != Token::Comment)
        .map(|(_, text)| *text)
        .collect();
    Some(Change {
        effect,
        role: role(&words),
        text: text.trim().to_owned(),
    })
}

/// The role of a statement: the grantee, or the role that is created, altered or dropped.
fn role(words: &[(Token, &str)]) -> Option<String> {
    let is = |at: usize, wanted: &[&str]| {
        words
            .get(at)
            .is_some_and(|(_, word)| wanted.iter().any(|it| word.eq_ignore_ascii_case(it)))
    };
    let name = |at: usize| {
        words
            .get(at)
            .map(|(_, word)| word.trim_matches('"').replace("\"\"", "\""))
    };
    if is(0, &["CREATE", "ALTER", "DROP"]) && is(1, &["ROLE", "USER"]) {
        let skip = if is(2, &["IF"]) { 2 } else { 0 };
        return name(2 + skip);
    }
    if is(0, &["COMMENT"]) && is(2, &["ROLE"]) {
        return name(3);
    }
    let grants = (0..words.len()).any(|at| is(at, &["GRANT", "REVOKE"]));
    let last = (0..words.len()).rev().find(|at| is(*at, &["TO", "FROM"]));
    last.filter(|_| grants).and_then(|at| name(at + 1))
}

#[cfg(test)]
mod tests {
    use super::Token::{Keyword, Name, Text};
    use super::*;

    #[test]
    fn the_words_are_sorted() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn quotes_hide_semicolons_and_keywords() {
        let found = tokens("COMMENT ON ROLE \"drop\" IS 'DROP; TABLE'");
        let kinds: Vec<_> = found
            .iter()
            .filter(|(_, text)| !text.trim().is_empty())
            .map(|(kind, _)| *kind)
            .collect();
        assert_eq!(kinds, [Keyword, Keyword, Keyword, Name, Keyword, Text]);
        assert_eq!(changes("COMMENT ON ROLE \"a\" IS 'x; y';").len(), 1);
        assert_eq!(changes("DO $$ BEGIN DROP ROLE a; END $$;").len(), 1);
    }

    #[test]
    fn a_statement_adds_removes_or_modifies() {
        let sql = "BEGIN;\n-- roles\nCREATE ROLE \"app\" LOGIN;\nALTER ROLE app NOLOGIN;\nDROP ROLE IF EXISTS old;\n\
                   GRANT SELECT ON TABLE \"s\".\"t\" TO \"app\";\nREVOKE ALL ON SCHEMA s FROM PUBLIC;\n\
                   ALTER DEFAULT PRIVILEGES FOR ROLE o IN SCHEMA s GRANT SELECT ON TABLES TO \"re\"\"ad\";\n\
                   ALTER DEFAULT PRIVILEGES FOR ROLE o REVOKE USAGE ON TYPES FROM app;\nCOMMIT;\n";
        let found: Vec<(Effect, Option<String>)> = changes(sql)
            .into_iter()
            .map(|change| (change.effect, change.role))
            .collect();
        let app = || Some("app".to_owned());
        assert_eq!(
            found,
            [
                (Effect::Add, app()),
                (Effect::Modify, app()),
                (Effect::Remove, Some("old".into())),
                (Effect::Add, app()),
                (Effect::Remove, Some("PUBLIC".into())),
                (Effect::Add, Some("re\"ad".into())),
                (Effect::Remove, app()),
            ]
        );
    }
}
