//! Markdown tables.

use std::fmt::Write as _;

/// The comment on every page.
pub(super) const MADE: &str = "<!-- Made by `make generate` from the types; do not edit. -->\n";

/// A table with these columns.
pub(super) fn table<const N: usize>(columns: [&str; N], rows: &[[String; N]]) -> String {
    let mut text = String::new();
    line(&mut text, columns);
    line(&mut text, ["---"; N]);
    for row in rows {
        line(&mut text, row.each_ref().map(String::as_str));
    }
    text
}

fn line<const N: usize>(text: &mut String, cells: [&str; N]) {
    for cell in cells {
        let words: Vec<&str> = cell.split_whitespace().collect();
        let _ = write!(text, "| {} ", words.join(" ").replace('|', "\\|"));
    }
    text.push_str("|\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_cannot_break_the_table() {
        assert_eq!(
            table(["a", "b"], &[["x|y".into(), "two\nlines".into()]]),
            "| a | b |\n| --- | --- |\n| x\\|y | two lines |\n"
        );
    }
}
