//! Generates passwords by rules (`password.generate`).
//!
//! Every character comes from a cryptographic generator, and is drawn without bias.
//! Rules that cannot be satisfied are refused before anything is drawn, with the field that has to change: an object
//! must not wait forever for a password that cannot exist.

#[cfg(test)]
mod tests;

use rand::CryptoRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use secrecy::SecretString;
use stanchion_api::user::Generate;
use stanchion_kernel::Problem;

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";
/// Symbols without a special meaning in a shell, a URI, a connection string or YAML.
const SYMBOLS: &str = "-._";
/// The schema's limits, checked again because an object may be older than the schema.
const LENGTHS: std::ops::RangeInclusive<u32> = 16..=128;
/// With fewer characters to choose from, even a long password could be guessed.
const FEWEST_CHARACTERS: usize = 10;

/// A new password that satisfies all rules.
pub(crate) fn password(generate: &Generate, random: &mut dyn CryptoRng) -> Result<SecretString, Problem> {
    Ok(Rules::of(generate)?.draw(random).into())
}

/// Whether a password that satisfies all rules can exist.
pub(crate) fn check(generate: &Generate) -> Result<(), Problem> {
    Rules::of(generate).map(drop)
}

/// A class of characters.
struct Class {
    /// The field that requires it.
    field: &'static str,
    name: &'static str,
    characters: Vec<char>,
    at_least: usize,
}

impl Class {
    fn new(
        generate: &Generate,
        field: &'static str,
        name: &'static str,
        all: &str,
        at_least: Option<u32>,
    ) -> Self {
        let excluded = generate.exclude.as_deref().unwrap_or_default();
        let mut characters: Vec<char> = all.chars().filter(|c| !excluded.contains(*c)).collect();
        // A symbol that is listed twice must not be twice as likely.
        characters.sort_unstable();
        characters.dedup();
        let at_least = at_least.unwrap_or(0) as usize;
        Self {
            field,
            name,
            characters,
            at_least,
        }
    }

    fn is_letters(&self) -> bool {
        self.characters.iter().any(char::is_ascii_alphabetic)
    }
}

/// Satisfiable rules.
struct Rules {
    length: usize,
    first_letter: bool,
    classes: [Class; 4],
}

impl Rules {
    fn of(generate: &Generate) -> Result<Self, Problem> {
        if !LENGTHS.contains(&generate.length) {
            let (least, most) = (LENGTHS.start(), LENGTHS.end());
            return Err(invalid("length", &format!("must be from {least} to {most}")));
        }
        let class = |field, name, all: &str, at_least| Class::new(generate, field, name, all, at_least);
        let rules = Self {
            length: generate.length as usize,
            first_letter: generate.first_letter,
            classes: [
                class("minLower", "lower-case letter", LOWER, generate.min_lower),
                class("minUpper", "upper-case letter", UPPER, generate.min_upper),
                class("minDigits", "digit", DIGITS, generate.min_digits),
                class("minSymbols", "symbol", symbols(generate)?, generate.min_symbols),
            ],
        };
        rules.possible()?;
        Ok(rules)
    }

    fn possible(&self) -> Result<(), Problem> {
        let lacking = |class: &&Class| class.at_least > 0 && class.characters.is_empty();
        if let Some(class) = self.classes.iter().find(lacking) {
            return Err(invalid(
                class.field,
                &format!("there is no {} to choose from", class.name),
            ));
        }
        if self.all(|_| true).len() < FEWEST_CHARACTERS {
            let message = format!("leaves fewer than {FEWEST_CHARACTERS} characters to choose from");
            return Err(invalid("exclude", &message));
        }
        if self.first_letter && self.all(Class::is_letters).is_empty() {
            return Err(invalid(
                "firstLetter",
                "asks for a letter, but `exclude` leaves none",
            ));
        }
        let asked = self.asked(|_| true);
        if asked > self.length {
            let message = format!("is {}, but the minimums add up to {asked}", self.length);
            return Err(invalid("length", &message));
        }
        if self.first_letter && asked == self.length && self.asked(Class::is_letters) == 0 {
            let message = "asks for a letter, but minDigits and minSymbols take every place";
            return Err(invalid("firstLetter", message));
        }
        Ok(())
    }

    fn draw(mut self, rng: &mut (impl CryptoRng + ?Sized)) -> String {
        let mut password = String::with_capacity(self.length);
        if self.first_letter {
            // If the minimums fill the whole password, the first letter has to be one of them.
            let full = self.asked(|_| true) == self.length;
            let letters = self.all(|class| class.is_letters() && (!full || class.at_least > 0));
            let first = letters.choose(rng);
            password.extend(first);
            let class = self
                .classes
                .iter_mut()
                .find(|class| first.is_some_and(|c| class.characters.contains(c)));
            if let Some(class) = class {
                class.at_least = class.at_least.saturating_sub(1);
            }
        }
        let mut rest: Vec<char> = Vec::with_capacity(self.length);
        for class in &self.classes {
            rest.extend((0..class.at_least).filter_map(|_| class.characters.choose(rng)));
        }
        let any = self.all(|_| true);
        let free = self.length.saturating_sub(password.len() + rest.len());
        rest.extend((0..free).filter_map(|_| any.choose(rng)));
        // Otherwise the minimums would always come first, in the order of the classes.
        rest.shuffle(rng);
        password.extend(rest);
        password
    }

    /// The characters of the chosen classes.
    fn all(&self, chosen: impl Fn(&Class) -> bool) -> Vec<char> {
        self.classes
            .iter()
            .filter(|class| chosen(class))
            .flat_map(|class| class.characters.iter().copied())
            .collect()
    }

    /// The sum of the minimums of the chosen classes.
    fn asked(&self, chosen: impl Fn(&Class) -> bool) -> usize {
        self.classes
            .iter()
            .filter(|class| chosen(class))
            .map(|class| class.at_least)
            .sum()
    }
}

/// The symbols to use: those that are listed, or a safe default if some are required; otherwise none.
fn symbols(generate: &Generate) -> Result<&str, Problem> {
    match generate.symbols.as_deref() {
        Some(listed) if listed.chars().all(|c| c.is_ascii_punctuation()) => Ok(listed),
        Some(_) => Err(invalid(
            "symbols",
            "may hold ASCII punctuation only: no letter, digit, space or other character",
        )),
        None if generate.min_symbols.unwrap_or(0) > 0 => Ok(SYMBOLS),
        None => Ok(""),
    }
}

fn invalid(field: &str, message: &str) -> Problem {
    Problem::permanent("InvalidSpec", format!("password.generate.{field}: {message}"))
}
