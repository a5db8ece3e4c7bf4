//! SQL without the values in it: a setting of a role may be a secret of an application.

use super::BLANK;
use crate::sql::{Token, tokens};

/// The statement with every literal replaced. Keywords, names, numbers and comments stay.
pub(super) fn blanked(sql: &str) -> String {
    let mut shown = String::with_capacity(sql.len());
    for (kind, text) in tokens(sql) {
        match kind {
            Token::Text => shown.extend(["'", BLANK, "'"]),
            Token::Quoted | Token::Word | Token::Number | Token::Comment | Token::Other => {
                shown.push_str(text);
            }
        }
    }
    shown
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
                "/* it's /* old */ */ SET a TO 'hunter2'",
                "/* it's /* old */ */ SET a TO '[REDACTED]'",
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
