//! SQL as words with colours, and as a list of differences. For reading only: nothing here is executed.

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

/// Splits SQL into tokens. The tokens together are the whole text, whatever it is.
pub(crate) fn tokens(text: &str) -> Vec<(Token, &str)> {
    let mut found: Vec<(Token, &str)> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = next(rest, first);
        let (token, after) = rest.split_at(length.max(first.len_utf8()).min(rest.len()));
        found.push((kind, token));
        rest = after;
    }
    found
}

/// The kind and length of the first token.
fn next(text: &str, first: char) -> (Token, usize) {
    let until = |end: &dyn Fn(char) -> bool| text.find(|c| !end(c)).unwrap_or(text.len());
    match first {
        '-' if text.starts_with("--") => (Token::Comment, text.find('\n').unwrap_or(text.len())),
        '/' if text.starts_with("/*") => (Token::Comment, text.find("*/").map_or(text.len(), |end| end + 2)),
        '\'' => (Token::Text, quoted(text, '\'')),
        '"' => (Token::Name, quoted(text, '"')),
        '$' => match dollar(text) {
            Some(length) => (Token::Text, length),
            None => (Token::Other, 1),
        },
        c if c.is_ascii_digit() => (Token::Number, until(&|c| c.is_ascii_digit() || c == '.')),
        c if c.is_alphabetic() || c == '_' => {
            let length = until(&|c| c.is_alphanumeric() || c == '_');
            let word = text.get(..length).unwrap_or_default().to_uppercase();
            if KEYWORDS.binary_search(&word.as_str()).is_ok() {
                (Token::Keyword, length)
            } else {
                (Token::Name, length)
            }
        }
        c if c.is_whitespace() => (Token::Other, until(&char::is_whitespace)),
        c => (Token::Other, c.len_utf8()),
    }
}

/// The length of a quoted text, with its quotes. A doubled quote belongs to it.
fn quoted(text: &str, quote: char) -> usize {
    let mut at = quote.len_utf8();
    loop {
        let Some(end) = text.get(at..).and_then(|rest| rest.find(quote)) else {
            return text.len();
        };
        at += end + quote.len_utf8();
        if !text.get(at..).is_some_and(|rest| rest.starts_with(quote)) {
            return at;
        }
        at += quote.len_utf8();
    }
}

/// The length of `$tag$ … $tag$`.
fn dollar(text: &str) -> Option<usize> {
    let end = text.get(1..)?.find('$')? + 2;
    let tag = text.get(..end)?;
    let valid = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    if !tag.chars().all(valid) {
        return None;
    }
    let body = text.get(end..)?;
    Some(body.find(tag).map_or(text.len(), |at| end + at + end))
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
    fn tokens_are_the_whole_text() {
        for text in [
            "GRANT SELECT ON TABLE \"a\"\"b\".t TO r; -- why\n",
            "COMMENT ON ROLE r IS 'it''s; fine';",
            "DO $x$ BEGIN; END $x$; SELECT 1.5",
            "'open",
            "\"open",
            "/* open",
            "$",
            "$a b$",
            "ä€ 'ü' --",
            "",
        ] {
            let joined: String = tokens(text).iter().map(|(_, token)| *token).collect();
            assert_eq!(joined, text);
        }
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
