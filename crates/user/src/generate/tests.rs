//! Every password satisfies its rules, for all satisfiable rules.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use secrecy::ExposeSecret as _;

use super::*;

fn rules(json: serde_json::Value) -> Generate {
    serde_json::from_value(json).unwrap()
}

fn one(generate: &Generate) -> String {
    password(generate, &mut rand::rng())
        .unwrap()
        .expose_secret()
        .to_owned()
}

fn count(password: &str, class: impl Fn(char) -> bool) -> u32 {
    u32::try_from(password.chars().filter(|c| class(*c)).count()).unwrap()
}

/// Checks the rules independently of the code under test.
fn keeps(generate: &Generate, password: &str) -> bool {
    let at_least =
        |minimum: Option<u32>, class: fn(char) -> bool| count(password, class) >= minimum.unwrap_or(0);
    let symbols = generate
        .symbols
        .as_deref()
        .unwrap_or(if generate.min_symbols > Some(0) { "-._" } else { "" });
    let exclude = generate.exclude.as_deref().unwrap_or("");
    count(password, |_| true) == generate.length
        && at_least(generate.min_lower, |c| c.is_ascii_lowercase())
        && at_least(generate.min_upper, |c| c.is_ascii_uppercase())
        && at_least(generate.min_digits, |c| c.is_ascii_digit())
        && at_least(generate.min_symbols, |c| c.is_ascii_punctuation())
        && password
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || symbols.contains(c))
        && !password.chars().any(|c| exclude.contains(c))
        && (!generate.first_letter || password.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn any_rules() -> impl Strategy<Value = Generate> {
    let minimum = || proptest::option::of(0..=32u32);
    let minimums = (minimum(), minimum(), minimum(), minimum());
    let symbols = proptest::option::of("[!-/:-@\\[-`{-~]{0,32}");
    let exclude = proptest::option::of("[ -~é]{0,64}");
    (16..=128u32, minimums, symbols, exclude, any::<bool>()).prop_map(
        |(length, (min_lower, min_upper, min_digits, min_symbols), symbols, exclude, first_letter)| {
            Generate {
                length,
                min_lower,
                min_upper,
                min_digits,
                min_symbols,
                symbols,
                exclude,
                first_letter,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_password_keeps_every_rule_or_is_refused_by_a_field(generate in any_rules()) {
        match password(&generate, &mut rand::rng()) {
            Ok(password) => {
                prop_assert!(check(&generate).is_ok());
                prop_assert!(keeps(&generate, password.expose_secret()), "{}", password.expose_secret());
            }
            Err(problem) => {
                prop_assert_eq!(problem.reason, "InvalidSpec");
                prop_assert!(problem.message.starts_with("password.generate."), "{}", problem.message);
                prop_assert!(check(&generate).is_err());
            }
        }
    }
}

#[test]
fn by_default_a_password_has_32_letters_and_digits_and_begins_with_a_letter() {
    let password = one(&rules(serde_json::json!({})));
    assert_eq!(password.len(), 32);
    assert!(password.chars().all(|c| c.is_ascii_alphanumeric()));
    assert!(password.starts_with(|c: char| c.is_ascii_alphabetic()));
}

#[test]
fn minimums_may_fill_the_whole_password() {
    for only in ["minLower", "minUpper"] {
        let generate = rules(serde_json::json!({"length": 32, only: 32, "exclude": "xX"}));
        (0..50).for_each(|_| assert!(keeps(&generate, &one(&generate))));
    }
    let generate = rules(serde_json::json!({"length": 16, "minLower": 1, "minDigits": 15}));
    let password = one(&generate);
    assert!(
        password.starts_with(|c: char| c.is_ascii_lowercase()),
        "{password}"
    );
}

#[test]
fn what_cannot_be_is_refused_with_the_field_that_has_to_change() {
    let letters = format!("{LOWER}{UPPER}");
    let cases = [
        (
            serde_json::json!({"length": 15}),
            "length: must be from 16 to 128",
        ),
        (
            serde_json::json!({"length": 16, "minLower": 9, "minDigits": 8}),
            "length: is 16, but the minimums add up to 17",
        ),
        (
            serde_json::json!({"length": 16, "minDigits": 16}),
            "firstLetter: asks for a letter, but minDigits",
        ),
        (
            serde_json::json!({"exclude": letters}),
            "firstLetter: asks for a letter, but `exclude` leaves none",
        ),
        (
            serde_json::json!({"exclude": letters, "minUpper": 1}),
            "minUpper: there is no upper-case letter",
        ),
        (
            serde_json::json!({"exclude": format!("{letters}12")}),
            "exclude: leaves fewer than 10",
        ),
        (
            serde_json::json!({"minSymbols": 1, "exclude": "-._"}),
            "minSymbols: there is no symbol",
        ),
        (
            serde_json::json!({"minSymbols": 1, "symbols": ""}),
            "minSymbols: there is no symbol",
        ),
        (
            serde_json::json!({"symbols": "!a"}),
            "symbols: may hold ASCII punctuation only",
        ),
        (
            serde_json::json!({"symbols": "€"}),
            "symbols: may hold ASCII punctuation only",
        ),
        (
            serde_json::json!({"minLower": u32::MAX, "minUpper": u32::MAX}),
            "length: is 32, but the minimums",
        ),
    ];
    for (json, expected) in cases {
        let problem = check(&rules(json.clone())).unwrap_err();
        assert!(
            problem
                .message
                .starts_with(&format!("password.generate.{expected}")),
            "{json}: {problem}"
        );
    }
}

/// The statistic of a chi-squared test against the even distribution over so many characters.
fn chi_squared(counts: &BTreeMap<char, u32>, characters: u32) -> f64 {
    let expected = f64::from(counts.values().sum::<u32>()) / f64::from(characters);
    let seen = counts
        .values()
        .map(|seen| (f64::from(*seen) - expected).powi(2) / expected);
    let unseen = (counts.len()..characters as usize).map(|_| expected);
    seen.chain(unseen).sum()
}

#[test]
fn characters_are_even_and_minimums_stand_anywhere() {
    // With a fixed seed the result is the same each time: a biased draw always fails, a good one never.
    let mut rng = StdRng::seed_from_u64(1);
    let (mut characters, mut places) = (BTreeMap::new(), vec![0u32; 16]);
    let plain = rules(serde_json::json!({"length": 128}));
    let symbol = rules(serde_json::json!({"length": 16, "minSymbols": 1, "symbols": "!!!"}));
    for _ in 0..500 {
        for c in Rules::of(&plain).unwrap().draw(&mut rng).chars().skip(1) {
            *characters.entry(c).or_default() += 1;
        }
        let password = Rules::of(&symbol).unwrap().draw(&mut rng);
        password
            .match_indices('!')
            .for_each(|(place, _)| places[place] += 1);
    }
    // 61 degrees of freedom: 103.4 is exceeded once in 2,000 by chance.
    assert!(chi_squared(&characters, 62) < 103.4, "{characters:?}");
    assert_eq!(places[0], 0, "the first is a letter");
    assert!(
        places.iter().skip(1).all(|seen| (20..70).contains(seen)),
        "{places:?}"
    );
}

#[test]
fn no_two_passwords_are_alike() {
    let generate = rules(serde_json::json!({"length": 16}));
    let all: std::collections::BTreeSet<String> = (0..200).map(|_| one(&generate)).collect();
    assert_eq!(all.len(), 200);
}
