//! Patterns, and the words of what is open.

use super::*;

#[test]
fn words_are_open_up_to_what_is_said() {
    let request = |words: &[Privilege]| {
        let mut request = DatabaseRequest::default();
        request.add(words);
        request
    };
    let read = [Privilege::Read];
    assert_eq!(
        more_than(&read, &request(&[Privilege::Connect, Privilege::Select])),
        None
    );
    let write = more_than(&read, &request(&[Privilege::Write]));
    assert!(write.is_some_and(|word| word.contains("in schema public")));
    assert_eq!(
        more_than(&read, &request(&[Privilege::Temp])).as_deref(),
        Some("TEMPORARY")
    );
    assert_eq!(
        more_than(&[Privilege::Owner], &request(&[Privilege::Owner])),
        None
    );
}

#[test]
fn a_star_stands_for_any_characters() {
    for (pattern, name, like) in [
        ("*", "", true),
        ("*", "shop", true),
        ("shop", "shop", true),
        ("shop", "shops", false),
        ("shop*", "shop", true),
        ("shop*", "shop_a", true),
        ("*_ro", "shop_ro", true),
        ("*_ro", "shop_rw", false),
        ("a*b*c", "a--b--c", true),
        ("a*b*c", "a--c--b", false),
        ("a*b*b", "ab", false),
        ("a*b*b", "abb", true),
        ("**", "x", true),
    ] {
        assert_eq!(is_like(pattern, name), like, "{pattern} {name}");
    }
}
