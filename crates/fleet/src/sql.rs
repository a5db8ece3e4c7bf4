//! SQL as tokens: to show it in colours, and to take the values out of it. Nothing here is executed.

/// What a piece of SQL is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// `'it''s'`, or `$tag$ … $tag$`. The letter of `E'it\'s'` is a word before it.
    Text,
    /// `"a name"`
    Quoted,
    /// A keyword, or a name without quotes.
    Word,
    Number,
    Comment,
    Other,
}

/// Splits SQL into tokens. The tokens together are the whole text, whatever it is.
pub fn tokens(text: &str) -> Vec<(Token, &str)> {
    let mut found: Vec<(Token, &str)> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = next(rest, first, found.last().copied());
        let (token, after) = rest
            .split_at_checked(length.max(first.len_utf8()))
            .unwrap_or((rest, ""));
        found.push((kind, token));
        rest = after;
    }
    found
}

/// The kind and length of the first token, given the one before it.
fn next(text: &str, first: char, before: Option<(Token, &str)>) -> (Token, usize) {
    let until = |end: &dyn Fn(char) -> bool| text.find(|c| !end(c)).unwrap_or(text.len());
    match first {
        '-' if text.starts_with("--") => (Token::Comment, text.find('\n').unwrap_or(text.len())),
        '/' if text.starts_with("/*") => (Token::Comment, block(text)),
        '\'' => {
            let is_escape = before.is_some_and(|(_, word)| word.eq_ignore_ascii_case("e"));
            (Token::Text, quoted(text, '\'', is_escape))
        }
        '"' => (Token::Quoted, quoted(text, '"', false)),
        '$' => {
            // Within a word, as in `a$1$`, it begins no text.
            let is_inside = before.is_some_and(|(kind, _)| matches!(kind, Token::Word | Token::Number));
            match dollars(text).filter(|_| !is_inside) {
                Some(length) => (Token::Text, length),
                None => (Token::Other, 1),
            }
        }
        c if c.is_ascii_digit() => (Token::Number, until(&|c| c.is_ascii_digit() || c == '.')),
        c if is_word(c) => (Token::Word, until(&is_word)),
        c if c.is_whitespace() => (Token::Other, until(&char::is_whitespace)),
        c => (Token::Other, c.len_utf8()),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of a comment with its marks. Comments can be nested. Without an end, all of it.
fn block(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if rest.starts_with("*/") {
            (at, depth) = (at + 2, depth.saturating_sub(1));
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a quoted text with its quotes; a doubled quote is part of the text. Without an end, all of it.
fn quoted(text: &str, quote: char, has_escapes: bool) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if has_escapes && character == '\\' {
            characters.next();
        } else if character == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

/// The length of `$tag$…$tag$`. `None` if the dollar sign begins no such text, as in `$1`.
fn dollars(text: &str) -> Option<usize> {
    let (tag, _) = text.get(1..)?.split_once('$')?;
    if !tag.chars().all(is_word) || tag.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mark = tag.len() + 2;
    let body = text.get(mark..)?;
    let end = body.find(text.get(..mark)?);
    Some(end.map_or(text.len(), |end| mark + end + mark))
}

#[cfg(test)]
mod tests {
    use super::Token::{Comment, Number, Other, Quoted, Text, Word};
    use super::*;

    #[test]
    fn tokens_are_the_whole_text() {
        for text in [
            "GRANT SELECT ON TABLE \"a\"\"b\".t TO r; -- why\n",
            "COMMENT ON ROLE r IS 'it''s; fine';",
            "DO $x$ BEGIN; END $x$; SELECT 1.5",
            "'open",
            "E'open\\",
            "\"open",
            "/* open /* */",
            "*/",
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
    fn every_form_of_a_text_ends_where_postgresql_ends_it() {
        let shown = |text| -> Vec<(Token, &str)> {
            let all = tokens(text).into_iter();
            all.filter(|(_, token)| !token.trim().is_empty()).collect()
        };
        assert_eq!(
            shown(r"E'it\'s' x"),
            [(Word, "E"), (Text, r"'it\'s'"), (Word, "x")]
        );
        assert_eq!(shown(r"CASE'\' x"), [(Word, "CASE"), (Text, r"'\'"), (Word, "x")]);
        assert_eq!(shown("'a''b' 'c"), [(Text, "'a''b'"), (Text, "'c")]);
        assert_eq!(
            shown(r#""a""b" $1"#),
            [(Quoted, r#""a""b""#), (Other, "$"), (Number, "1")]
        );
        assert_eq!(shown("$$a$$ $t$ $$ $t$"), [(Text, "$$a$$"), (Text, "$t$ $$ $t$")]);
        assert_eq!(
            shown("/* it's /* nested */ */ 'x' -- it's"),
            [
                (Comment, "/* it's /* nested */ */"),
                (Text, "'x'"),
                (Comment, "-- it's")
            ]
        );
    }
}
