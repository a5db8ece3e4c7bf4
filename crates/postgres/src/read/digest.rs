//! The digest of many query results, to find out whether anything has changed.
//!
//! The rows stay on the server, and all queries are one statement: one round trip, one snapshot. Two sums of hashes
//! with different seeds do not depend on the order of the rows, so nothing is sorted.

use super::Query;
use crate::statement::Statement;

impl Query {
    /// A query with one row and one text, which changes when the result of any of these queries does.
    #[must_use]
    pub fn digest(queries: Vec<Self>) -> Self {
        let mut parts = Vec::new();
        let mut values = Vec::new();
        for query in queries {
            let sql = renumbered(query.statement.expose_sql(), values.len());
            parts.push(format!(
                "(SELECT pg_catalog.concat_ws('-', pg_catalog.count(*), \
                 pg_catalog.sum(pg_catalog.hashtextextended((q.*)::pg_catalog.text, 0)), \
                 pg_catalog.sum(pg_catalog.hashtextextended((q.*)::pg_catalog.text, 1))) FROM ({sql}) AS q)"
            ));
            values.extend(query.values);
        }
        Self {
            statement: Statement::of_parts(format!("SELECT pg_catalog.concat_ws('.', {})", parts.join(", "))),
            values,
        }
    }
}

/// The text with the numbers of `$1` and so on increased.
fn renumbered(sql: &str, by: usize) -> String {
    let mut pieces = sql.split('$');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = piece.split_at(digits);
        text.push('$');
        match number.parse::<usize>() {
            Ok(number) => text.push_str(&(number + by).to_string()),
            Err(_) => text.push_str(number),
        }
        text.push_str(rest);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_places() {
        assert_eq!(
            renumbered("a = $1 AND b = ANY ($12)", 3),
            "a = $4 AND b = ANY ($15)"
        );
        assert_eq!(renumbered("SELECT 1", 3), "SELECT 1");
        let query = Query::digest(vec![
            Query::new("SELECT $1").text("x"),
            Query::new("SELECT $1, $2").text("y").text("z"),
        ]);
        let sql = query.statement.expose_sql();
        assert!(
            sql.contains("(SELECT $1) AS q") && sql.contains("(SELECT $2, $3) AS q"),
            "{sql}"
        );
        assert_eq!(query.values.len(), 3);
    }
}
