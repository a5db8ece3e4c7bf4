//! Password verifiers (SCRAM-SHA-256), computed by the client.
//!
//! `ALTER ROLE … PASSWORD 'clear'` leaves the password in the server's log, in `pg_stat_statements` and in every error
//! message that quotes the statement. A verifier is what the server would compute and store anyway; it cannot be used
//! to log in. `postgres-protocol` computes verifiers, too, but cannot compare a password with a stored one.

use std::num::NonZeroU32;

use aws_lc_rs::{constant_time, digest, hmac, pbkdf2};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::CryptoRng;
use secrecy::{ExposeSecret, SecretString};

const SCHEME: &str = "SCRAM-SHA-256";
/// PostgreSQL's default `scram_iterations`.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).unwrap();
/// Higher iteration counts are rejected: a stored verifier determines how long a comparison takes.
const MAX_ITERATIONS: u32 = 1_000_000;
const KEY_BYTES: usize = digest::SHA256_OUTPUT_LEN;

/// The salt of a verifier, of the length that PostgreSQL uses.
pub type Salt = [u8; 16];

/// How a stored or given password is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// A SCRAM-SHA-256 verifier.
    Scram,
    /// An `md5…` hash.
    Md5,
    /// No encoding: the password itself.
    Clear,
}

/// Detects the encoding by the same rules as the server, which stores an encoded password unchanged.
pub fn encoding(password: &SecretString) -> Encoding {
    let text = password.expose_secret();
    if Verifier::parse(text).is_some() {
        Encoding::Scram
    } else if text
        .strip_prefix("md5")
        .is_some_and(|hash| hash.len() == 32 && hash.bytes().all(is_lower_hex))
    {
        Encoding::Md5
    } else {
        Encoding::Clear
    }
}

/// A random salt. Every verifier needs its own.
pub fn salt(random: &mut dyn CryptoRng) -> Salt {
    let mut salt = Salt::default();
    random.fill_bytes(&mut salt);
    salt
}

/// The verifier of a cleartext password.
pub fn verifier(password: &SecretString, salt: &Salt) -> SecretString {
    Verifier::derive(password, salt, ITERATIONS).render().into()
}

/// Whether the cleartext password matches the stored SCRAM verifier; `None` if the stored text is not a verifier.
pub fn matches(password: &SecretString, stored: &str) -> Option<bool> {
    let stored = Verifier::parse(stored)?;
    let derived = Verifier::derive(password, &stored.salt, stored.iterations);
    Some(constant_time::verify_slices_are_equal(&derived.stored_key, &stored.stored_key).is_ok())
}

/// The iterations that the comparisons of one pass may take beyond the usual ones. The server or a Secret determines how many a
/// comparison takes, and a pass can have a thousand comparisons.
#[derive(Debug)]
pub struct Rounds(u32);

impl Default for Rounds {
    /// Enough for some verifiers that somebody made with more iterations.
    fn default() -> Self {
        Self(1 << 18)
    }
}

impl Rounds {
    /// Like [`matches`]. A verifier whose extra iterations are more than what is left counts as one of another password: it is
    /// replaced by one of the usual cost. That one takes nothing from the budget, so the replacement is the last.
    pub fn matches(&mut self, password: &SecretString, stored: &str) -> Option<bool> {
        let iterations = Verifier::parse(stored)?.iterations.get();
        match self.0.checked_sub(iterations.saturating_sub(ITERATIONS.get())) {
            Some(left) => {
                self.0 = left;
                matches(password, stored)
            }
            None => Some(false),
        }
    }
}

struct Verifier {
    iterations: NonZeroU32,
    salt: Vec<u8>,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl Verifier {
    fn derive(password: &SecretString, salt: &[u8], iterations: NonZeroU32) -> Self {
        let mut salted = [0; KEY_BYTES];
        let password = prepare(password.expose_secret());
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            iterations,
            salt,
            password.as_bytes(),
            &mut salted,
        );
        let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
        let client_key = hmac::sign(&key, b"Client Key");
        Self {
            iterations,
            salt: salt.to_vec(),
            stored_key: digest::digest(&digest::SHA256, client_key.as_ref())
                .as_ref()
                .to_vec(),
            server_key: hmac::sign(&key, b"Server Key").as_ref().to_vec(),
        }
    }

    /// `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`
    fn render(&self) -> String {
        let [salt, stored, server] =
            [&self.salt, &self.stored_key, &self.server_key].map(|key| STANDARD.encode(key));
        format!("{SCHEME}${}:{salt}${stored}:{server}", self.iterations)
    }

    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once('$')?;
        let (cost, keys) = rest.split_once('$')?;
        let (iterations, salt) = cost.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let decode = |text: &str| STANDARD.decode(text).ok();
        let key = |text: &str| decode(text).filter(|key| key.len() == KEY_BYTES);
        (scheme == SCHEME).then_some(Self {
            iterations: iterations
                .parse()
                .ok()
                .filter(|count: &NonZeroU32| count.get() <= MAX_ITERATIONS)?,
            salt: decode(salt)?,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        })
    }
}

/// `SASLprep` as PostgreSQL does it: a password with forbidden characters is used unchanged.
fn prepare(password: &str) -> std::borrow::Cow<'_, str> {
    // PostgreSQL checks the characters before normalisation, the library only after it: the two would treat a newer
    // character that decomposes into old ones differently.
    let too_new = password.chars().any(stringprep::tables::unassigned_code_point);
    match stringprep::saslprep(password) {
        Ok(prepared) if !too_new && !prepared.is_empty() => prepared,
        _ => password.into(),
    }
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server's own result, PostgreSQL 15: `CREATE ROLE … PASSWORD 'pencil'`, read from `pg_authid`.
    const PENCIL: &str = "SCRAM-SHA-256$4096:Gz8EonvGyHAYIy6Wq7PLpQ==$sukFvundaeoLohR6pGyZD8yYyiWVOCnRSqEUu4779Zc=:D5fC/jS+nu0TE+mL4XiM+WzHRmuCs3Io1/7PiNLkDGk=";

    #[test]
    fn the_servers_own_verifier_matches() {
        assert_eq!(matches(&"pencil".into(), PENCIL), Some(true));
        assert_eq!(matches(&"pencil ".into(), PENCIL), Some(false));
        assert_eq!(
            matches(&"pencil".into(), "md5d41d8cd98f00b204e9800998ecf8427e"),
            None
        );
    }

    #[test]
    fn the_drivers_verifiers_match() {
        for password in [
            "pencil",
            "pässwörd",
            "\u{2168}",
            "a\u{a0}b",
            "I\u{ad}X",
            "\u{7}bell",
            "😀",
            "p' \\ \" %",
        ] {
            let theirs = postgres_protocol::password::scram_sha_256(password.as_bytes());
            assert_eq!(matches(&password.into(), &theirs), Some(true), "{password:?}");
        }
    }

    #[test]
    fn our_verifiers_match_and_differ() {
        let password: SecretString = "correct horse".into();
        let [one, two] = [(); 2].map(|()| verifier(&password, &salt(&mut rand::rng())));
        assert_ne!(one.expose_secret(), two.expose_secret());
        for made in [one, two] {
            assert_eq!(matches(&password, made.expose_secret()), Some(true));
            assert_eq!(matches(&"wrong".into(), made.expose_secret()), Some(false));
            assert_eq!(encoding(&made), Encoding::Scram);
        }
    }

    #[test]
    fn encodings() {
        let cases = [
            (PENCIL, Encoding::Scram),
            ("md5d41d8cd98f00b204e9800998ecf8427e", Encoding::Md5),
            ("md5D41D8CD98F00B204E9800998ECF8427E", Encoding::Clear),
            ("md5d41d8cd98f00b204e9800998ecf8427", Encoding::Clear),
            ("SCRAM-SHA-256$4096:c2FsdA==$short:keys", Encoding::Clear),
            ("SCRAM-SHA-256$0:c2FsdA==$AAAA:AAAA", Encoding::Clear),
            ("SCRAM-SHA-256", Encoding::Clear),
            ("", Encoding::Clear),
        ];
        for (text, expected) in cases {
            assert_eq!(encoding(&text.into()), expected, "{text}");
        }
    }

    #[test]
    fn a_stored_verifier_cannot_make_us_work_for_ever() {
        let costly = PENCIL.replacen("4096", "4000000000", 1);
        assert_eq!(matches(&"pencil".into(), &costly), None);
    }

    #[test]
    fn many_costly_verifiers_do_not_make_us_work_for_long() {
        let derived = |iterations| {
            let iterations = NonZeroU32::new(iterations).unwrap();
            Verifier::derive(&"pencil".into(), b"salt", iterations).render()
        };
        let (costly, usual) = (derived(100_000), derived(4096));
        let mut rounds = Rounds::default();
        let answers = [(); 3].map(|()| rounds.matches(&"pencil".into(), &costly));
        assert_eq!(answers, [Some(true), Some(true), Some(false)]);
        // What the operator makes itself always fits.
        assert!((0..7).all(|_| rounds.matches(&"pencil".into(), &usual) == Some(true)));
        assert_eq!(rounds.matches(&"pencil".into(), "md5"), None);
    }

    #[test]
    fn what_saslprep_leaves_empty_or_does_not_know_is_kept() {
        assert_eq!(prepare("\u{ad}"), "\u{ad}");
        assert_eq!(
            prepare("\u{1f130}"),
            "\u{1f130}",
            "squared A decomposes to A, but came after Unicode 3.2"
        );
        assert_eq!(prepare("\u{2168}"), "IX");
    }
}
