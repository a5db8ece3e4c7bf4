//! Makes text from outside safe for conditions, events, log lines and terminals.
//!
//! A server can send anything: megabytes, a line break followed by a forged log line, terminal escape sequences,
//! right-to-left overrides. An error keeps only a short and harmless version of it.

/// The maximum length of one text.
const MAX: usize = 4096;
/// The maximum length that is examined.
const LOOKED_AT: usize = 2 * MAX;

/// The beginning of a text, in which everything except letters, signs and spaces is escaped.
pub fn plain(text: &str) -> String {
    plain_to(text, MAX)
}

/// As [`plain`], with at most this many bytes.
pub fn plain_to(text: &str, max: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(max));
    for character in text.chars() {
        let before = shown.len();
        if is_harmless(character) {
            shown.push(character);
        } else {
            shown.extend(character.escape_default());
        }
        if shown.len() > max {
            shown.truncate(before);
            shown.push('…');
            break;
        }
    }
    shown
}

/// The part of a text that is examined.
pub(super) fn beginning(text: &str) -> &str {
    match text.char_indices().find(|(index, _)| *index >= LOOKED_AT) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}

fn is_harmless(character: char) -> bool {
    let hidden = matches!(
        character,
        // Soft hyphen, Arabic letter mark, zero widths and directions, line and paragraph separators, invisible
        // operators, the byte order mark, annotations, tags.
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    !character.is_control() && !hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_harmless() {
        assert_eq!(
            plain("relation \"ä b\" does not exist"),
            "relation \"ä b\" does not exist"
        );
        assert_eq!(
            plain("a\nb\x1b[31m\u{202e}c\0"),
            "a\\nb\\u{1b}[31m\\u{202e}c\\u{0}"
        );
        let long = plain(&"ä".repeat(3_000_000));
        assert!(long.len() <= MAX + '…'.len_utf8() && long.ends_with("ä…"));
        assert!(plain(&"\u{1b}".repeat(10_000)).len() <= MAX + '…'.len_utf8());
        assert_eq!(plain_to("abcd", 3), "abc…");
        assert!(beginning(&"ä".repeat(MAX * 4)).len() <= LOOKED_AT + 1);
    }
}
