//! Text for people, within the limits of the API.

/// Cuts a text to at most `max` bytes, between two characters, and marks the cut.
pub fn shorten(text: &str, max: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max.saturating_sub(ELLIPSIS.len()));
    let mut short = text.get(..end).unwrap_or_default().trim_end().to_owned();
    short.push_str(ELLIPSIS);
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_note_never_exceeds_the_limit_and_loses_only_its_end(note in "\\PC{0,1400}") {
            let short = shorten(&note, 1024);
            prop_assert!(short.len() <= 1024);
            match short.strip_suffix('…') {
                Some(kept) if note.len() > 1024 => prop_assert!(note.starts_with(kept)),
                _ => prop_assert_eq!(short, note),
            }
        }
    }

    #[test]
    fn multibyte_text_is_cut_between_characters() {
        let short = shorten(&"ä".repeat(600), 1024);
        assert_eq!(short.chars().filter(|c| *c == 'ä').count(), 510);
        assert!(short.ends_with("ä…"));
        assert_eq!(shorten(&"a".repeat(1024), 1024).len(), 1024);
    }
}
