//! SQL without the values in it: a setting of a role may be a secret of an application.

use super::BLANK;

/// The statement with every literal replaced. Keywords, names, numbers and comments stay.
pub(super) fn blanked(sql: &str) -> String {
    let mut shown = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => quoted(rest, '"', false),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '\'' => {
                // E'it\'s': the letter is already shown, and is part of no longer word.
                let mut before = shown.chars().rev();
                let is_escape =
                    matches!(before.next(), Some('E' | 'e')) && !before.next().is_some_and(is_word);
                let length = quoted(rest, '\'', is_escape);
                shown.extend(["'", BLANK, "'"]);
                rest = rest.get(length..).unwrap_or_default();
                continue;
            }
            '$' if !shown.chars().next_back().is_some_and(is_word) => match dollars(rest) {
                Some(length) => {
                    shown.extend(["'", BLANK, "'"]);
                    rest = rest.get(length..).unwrap_or_default();
                    continue;
                }
                None => 1,
            },
            other => other.len_utf8(),
        };
        let (part, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        shown.push_str(part);
        rest = after;
    }
    shown
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
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
    use super::blanked;

    #[test]
    fn sql_loses_its_literals_and_nothing_else() {
        let canary = "hunter2";
        for (sql, shown) in [
            (
                r#"ALTER ROLE "app" SET "app"."jwt_secret" TO 'hunter2';"#,
                r#"ALTER ROLE "app" SET "app"."jwt_secret" TO '[REDACTED]';"#,
            ),
            ("SET a TO 'it''s hunter2', b", "SET a TO '[REDACTED]', b"),
            (r"SET a TO E'\'hunter2' c", "SET a TO E'[REDACTED]' c"),
            (r"SELECT CASE'\' x", r"SELECT CASE'[REDACTED]' x"),
            (
                "DO $do$ hunter2 'x' $do$; DO $$hunter2$$;",
                "DO '[REDACTED]'; DO '[REDACTED]';",
            ),
            ("SET a TO 'hunter2", "SET a TO '[REDACTED]'"),
            (
                r#"COMMENT ON ROLE "it's" IS 'hunter2'; -- that's it"#,
                r#"COMMENT ON ROLE "it's" IS '[REDACTED]'; -- that's it"#,
            ),
            (
                "-- it's\nSET a TO 'hunter2'; LIMIT $1 $2",
                "-- it's\nSET a TO '[REDACTED]'; LIMIT $1 $2",
            ),
            (
                r#"ALTER ROLE "a""'b" CONNECTION LIMIT 7 PASSWORD 'hunter2'"#,
                r#"ALTER ROLE "a""'b" CONNECTION LIMIT 7 PASSWORD '[REDACTED]'"#,
            ),
            (
                r#"GRANT SELECT ON TABLE "ä"."t" TO "r";"#,
                r#"GRANT SELECT ON TABLE "ä"."t" TO "r";"#,
            ),
        ] {
            assert_eq!(blanked(sql), shown);
            assert!(!shown.contains(canary));
        }
    }
}
