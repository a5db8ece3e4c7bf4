//! The meaning of the keywords in `privileges`: one table.

use std::collections::BTreeSet;

use stanchion_api::user::Privilege;

use super::target::{DatabaseWish, SchemaWish};

/// What one keyword grants, and where.
struct Meaning {
    database: &'static [&'static str],
    schema: &'static [&'static str],
    tables: &'static [&'static str],
    sequences: &'static [&'static str],
    functions: &'static [&'static str],
}

const NOTHING: Meaning = Meaning {
    database: &[],
    schema: &[],
    tables: &[],
    sequences: &[],
    functions: &[],
};
const ALL_TABLES: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "TRUNCATE",
    "REFERENCES",
    "TRIGGER",
];
const ALL_SEQUENCES: &[&str] = &["SELECT", "UPDATE", "USAGE"];
/// Privileges inside of a schema are useless without this one.
const USAGE: &[&str] = &["USAGE"];

/// A keyword in `spec.privileges` or `databases[].privileges`.
const fn meaning(word: Privilege) -> Meaning {
    match word {
        Privilege::All | Privilege::AllPrivileges => Meaning {
            database: &["CONNECT", "CREATE", "TEMPORARY"],
            ..NOTHING
        },
        Privilege::Connect => Meaning {
            database: &["CONNECT"],
            ..NOTHING
        },
        Privilege::Create => Meaning {
            database: &["CREATE"],
            ..NOTHING
        },
        Privilege::Temporary | Privilege::Temp => Meaning {
            database: &["TEMPORARY"],
            ..NOTHING
        },
        Privilege::Select => Meaning {
            schema: USAGE,
            tables: &["SELECT"],
            sequences: &["SELECT"],
            ..NOTHING
        },
        Privilege::Insert => Meaning {
            schema: USAGE,
            tables: &["INSERT"],
            sequences: USAGE,
            ..NOTHING
        },
        Privilege::Update => Meaning {
            schema: USAGE,
            tables: &["UPDATE"],
            sequences: &["UPDATE"],
            ..NOTHING
        },
        Privilege::Delete => Meaning {
            schema: USAGE,
            tables: &["DELETE"],
            ..NOTHING
        },
        Privilege::Truncate => Meaning {
            schema: USAGE,
            tables: &["TRUNCATE"],
            ..NOTHING
        },
        Privilege::References => Meaning {
            schema: USAGE,
            tables: &["REFERENCES"],
            ..NOTHING
        },
        Privilege::Trigger => Meaning {
            schema: USAGE,
            tables: &["TRIGGER"],
            ..NOTHING
        },
        Privilege::Usage => Meaning {
            schema: USAGE,
            sequences: USAGE,
            ..NOTHING
        },
        Privilege::Execute => Meaning {
            schema: USAGE,
            functions: &["EXECUTE"],
            ..NOTHING
        },
        Privilege::Read => Meaning {
            database: &["CONNECT"],
            schema: USAGE,
            tables: &["SELECT"],
            sequences: &["SELECT"],
            functions: &[],
        },
        Privilege::Write => Meaning {
            database: &["CONNECT"],
            schema: USAGE,
            tables: &["SELECT", "INSERT", "UPDATE", "DELETE"],
            sequences: ALL_SEQUENCES,
            functions: &["EXECUTE"],
        },
        Privilege::Owner => Meaning {
            database: &["CONNECT", "CREATE", "TEMPORARY"],
            schema: &["USAGE", "CREATE"],
            tables: ALL_TABLES,
            sequences: ALL_SEQUENCES,
            functions: &["EXECUTE"],
        },
    }
}

/// A keyword in `schemas[].privileges`: CREATE and ALL apply to the schema there.
const fn meaning_in_schema(word: Privilege) -> Meaning {
    match word {
        Privilege::All | Privilege::AllPrivileges => meaning(Privilege::Owner),
        Privilege::Create => Meaning {
            schema: &["USAGE", "CREATE"],
            ..NOTHING
        },
        other => meaning(other),
    }
}

/// Adds keywords to a database; their schema privileges apply to the listed schemas without their own keywords, or to
/// `public` if none is listed.
pub fn add_to_database(wish: &mut DatabaseWish, words: &[Privilege]) {
    for word in words {
        let meaning = meaning(*word);
        wish.privileges.extend(meaning.database);
        if is_about_schemas(&meaning) {
            if wish.schemas.is_empty() {
                wish.schemas.insert("public".into(), SchemaWish::default());
            }
            for schema in wish.schemas.values_mut().filter(|schema| !schema.own_words) {
                add(schema, &meaning);
            }
        }
    }
}

/// Adds keywords to one schema.
pub fn add_to_schema(wish: &mut SchemaWish, words: &[Privilege]) {
    for word in words {
        add(wish, &meaning_in_schema(*word));
    }
}

fn is_about_schemas(meaning: &Meaning) -> bool {
    !meaning.schema.is_empty()
}

fn add(wish: &mut SchemaWish, meaning: &Meaning) {
    let parts: [(&mut BTreeSet<&'static str>, &[&'static str]); 4] = [
        (&mut wish.schema, meaning.schema),
        (&mut wish.tables, meaning.tables),
        (&mut wish.sequences, meaning.sequences),
        (&mut wish.functions, meaning.functions),
    ];
    for (have, more) in parts {
        have.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guides_words_are_about_the_database() {
        let mut wish = DatabaseWish::default();
        add_to_database(&mut wish, &[Privilege::Connect, Privilege::Temp, Privilege::All]);
        assert_eq!(
            wish.privileges,
            BTreeSet::from(["CONNECT", "CREATE", "TEMPORARY"])
        );
        assert!(wish.schemas.is_empty());
    }

    #[test]
    fn table_words_without_schemas_mean_public() {
        let mut wish = DatabaseWish::default();
        add_to_database(&mut wish, &[Privilege::Read]);
        let public = &wish.schemas["public"];
        assert_eq!(public.tables, BTreeSet::from(["SELECT"]));
        assert_eq!(public.schema, BTreeSet::from(["USAGE"]));
    }

    #[test]
    fn table_words_apply_to_the_listed_schemas_only() {
        let mut wish = DatabaseWish::default();
        wish.schemas.insert("app".into(), SchemaWish::default());
        add_to_database(&mut wish, &[Privilege::Select]);
        assert_eq!(wish.schemas.keys().collect::<Vec<_>>(), ["app"]);
    }

    #[test]
    fn a_schema_with_words_of_its_own_gets_no_others() {
        let mut wish = DatabaseWish::default();
        let own = SchemaWish {
            own_words: true,
            ..SchemaWish::default()
        };
        wish.schemas.insert("app".into(), own);
        wish.schemas.insert("log".into(), SchemaWish::default());
        add_to_database(&mut wish, &[Privilege::Write]);
        assert!(wish.schemas["app"].tables.is_empty());
        assert!(wish.schemas["log"].tables.contains("INSERT"));
    }
}
