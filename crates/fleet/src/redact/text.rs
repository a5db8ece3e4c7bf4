//! Redacts what looks like a credential in a text.

use super::{BLANK, assignment};

/// A text of the operator, without everything that looks like a credential: the user in a URL, the value of
/// `password=`, a token, a private key.
pub fn text(words: &str) -> String {
    let lines: Vec<&str> = words.split_inclusive('\n').collect();
    let mut shown = String::with_capacity(words.len());
    let mut key = Key::Outside;
    for (line, has_end) in lines.iter().zip(ends(&lines)) {
        if has_mark(line, BEGIN) {
            shown.push_str(BLANK);
            key = if has_end { Key::UpToEnd } else { Key::Cut };
            if key == Key::Cut && line.ends_with('\n') {
                shown.push('\n');
            }
        }
        match key {
            Key::UpToEnd => {
                if has_mark(line, END) {
                    key = Key::Outside;
                }
            }
            // The text ends inside of a key, or somebody wrote the mark to hide what follows: only lines that can be a part
            // of a key belong to it.
            Key::Cut if has_mark(line, BEGIN) || is_base64(line) => {}
            Key::Cut | Key::Outside => {
                key = Key::Outside;
                shown.push_str(&assignment::blanked(&tokens(&urls(line))));
            }
        }
    }
    shown
}

/// Where a line is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Outside,
    /// In a private key that has an end.
    UpToEnd,
    /// In a private key without an end.
    Cut,
}

const BEGIN: &str = "-----BEGIN";
const END: &str = "-----END";

/// For each line, whether a key that begins there ends before another one begins.
fn ends(lines: &[&str]) -> Vec<bool> {
    let mut ends = false;
    let of = |line: &&str| {
        ends |= has_mark(line, END);
        if has_mark(line, BEGIN) {
            std::mem::take(&mut ends)
        } else {
            ends
        }
    };
    let mut found: Vec<bool> = lines.iter().rev().map(of).collect();
    found.reverse();
    found
}

fn has_mark(line: &str, mark: &str) -> bool {
    line.contains(mark) && line.contains("PRIVATE KEY")
}

fn is_base64(line: &str) -> bool {
    let line = line.trim();
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    !line.is_empty() && line.chars().all(valid)
}

/// Removes the user and password from `postgres://user:password@host`.
fn urls(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let ends = |c: char| {
            c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '`' | '<' | '>' | '?' | '#' | ',' | ')')
        };
        let end = after.find(ends).unwrap_or(after.len());
        let (authority, left) = after.split_at(end);
        // A password may itself contain one of these characters: then the at sign comes later in the same word.
        let word = after.find(char::is_whitespace).unwrap_or(after.len());
        let (whole, behind) = after.split_at(word);
        match (authority.rsplit_once('@'), whole.rsplit_once('@')) {
            (Some((_, host)), _) => {
                shown.extend([BLANK, "@", host]);
                rest = left;
            }
            (None, Some((_, host))) => {
                shown.extend([BLANK, "@", host]);
                rest = behind;
            }
            (None, None) => {
                shown.push_str(authority);
                rest = left;
            }
        }
    }
    shown.push_str(rest);
    shown
}

/// JSON web tokens.
fn tokens(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("eyJ") {
        let (before, token) = rest.split_at(at);
        let end = token.find(|c| !is_part(c)).unwrap_or(token.len());
        let (token, after) = token.split_at(end);
        shown.push_str(before);
        shown.push_str(if token.matches('.').count() >= 2 {
            BLANK
        } else {
            token
        });
        rest = after;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_private_key_is_blanked_out_and_nothing_else() {
        let key =
            "a\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\nhunter2+/==\n-----END EC PRIVATE KEY-----\nb\n";
        assert_eq!(text(key), "a\n[REDACTED]b\n");
        // Without an end, for example in the last lines of a log.
        let cut = "a\n-----BEGIN PRIVATE KEY-----\nMHcCAQEE\nhunter2+/==\n";
        assert_eq!(text(cut), "a\n[REDACTED]\n");
        // Somebody wrote the mark into a comment.
        let comment = "IS '-----BEGIN PRIVATE KEY-----';\nGRANT a TO b;\nGRANT c TO d;\n";
        assert_eq!(text(comment), "[REDACTED]\nGRANT a TO b;\nGRANT c TO d;\n");
        let two = "-----BEGIN PRIVATE KEY-----\nx y\n-----END PRIVATE KEY-----\nz w\n-----BEGIN PRIVATE KEY-----\nlog line\n";
        assert_eq!(text(two), "[REDACTED]z w\n[REDACTED]\nlog line\n");
    }
}
