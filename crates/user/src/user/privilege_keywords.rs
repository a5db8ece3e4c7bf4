//! The meaning of the keywords in `privileges`: one table.

use std::collections::BTreeSet;

use stanchion_api::user::Privilege;

use super::target::{DatabaseRequest, SchemaRequest};

/// What one keyword grants, and where.
struct Privileges {
    database: &'static [&'static str],
    schema: &'static [&'static str],
    tables: &'static [&'static str],
    sequences: &'static [&'static str],
    functions: &'static [&'static str],
}

const NOTHING: Privileges = Privileges {
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
const fn meaning(word: Privilege) -> Privileges {
    match word {
        Privilege::All | Privilege::AllPrivileges => Privileges {
            database: &["CONNECT", "CREATE", "TEMPORARY"],
            ..NOTHING
        },
        Privilege::Connect => Privileges {
            database: &["CONNECT"],
            ..NOTHING
        },
        Privilege::Create => Privileges {
            database: &["CREATE"],
            ..NOTHING
        },
        Privilege::Temporary | Privilege::Temp => Privileges {
            database: &["TEMPORARY"],
            ..NOTHING
        },
        Privilege::Select => Privileges {
            schema: USAGE,
            tables: &["SELECT"],
            sequences: &["SELECT"],
            ..NOTHING
        },
        Privilege::Insert => Privileges {
            schema: USAGE,
            tables: &["INSERT"],
            sequences: USAGE,
            ..NOTHING
        },
        Privilege::Update => Privileges {
            schema: USAGE,
            tables: &["UPDATE"],
            sequences: &["UPDATE"],
            ..NOTHING
        },
        Privilege::Delete => Privileges {
            schema: USAGE,
            tables: &["DELETE"],
            ..NOTHING
        },
        Privilege::Truncate => Privileges {
            schema: USAGE,
            tables: &["TRUNCATE"],
            ..NOTHING
        },
        Privilege::References => Privileges {
            schema: USAGE,
            tables: &["REFERENCES"],
            ..NOTHING
        },
        Privilege::Trigger => Privileges {
            schema: USAGE,
            tables: &["TRIGGER"],
            ..NOTHING
        },
        Privilege::Usage => Privileges {
            schema: USAGE,
            sequences: USAGE,
            ..NOTHING
        },
        Privilege::Execute => Privileges {
            schema: USAGE,
            functions: &["EXECUTE"],
            ..NOTHING
        },
        Privilege::Read => Privileges {
            database: &["CONNECT"],
            schema: USAGE,
            tables: &["SELECT"],
            sequences: &["SELECT"],
            functions: &[],
        },
        Privilege::Write => Privileges {
            database: &["CONNECT"],
            schema: USAGE,
            tables: &["SELECT", "INSERT", "UPDATE", "DELETE"],
            sequences: ALL_SEQUENCES,
            functions: &["EXECUTE"],
        },
        Privilege::Owner => Privileges {
            database: &["CONNECT", "CREATE", "TEMPORARY"],
            schema: &["USAGE", "CREATE"],
            tables: ALL_TABLES,
            sequences: ALL_SEQUENCES,
            functions: &["EXECUTE"],
        },
    }
}

/// A keyword in `schemas[].privileges`: CREATE and ALL apply to the schema there.
const fn meaning_in_schema(word: Privilege) -> Privileges {
    match word {
        Privilege::All | Privilege::AllPrivileges => meaning(Privilege::Owner),
        Privilege::Create => Privileges {
            schema: &["USAGE", "CREATE"],
            ..NOTHING
        },
        other => meaning(other),
    }
}

/// Adds keywords to a database; their schema privileges apply to the listed schemas without their own keywords, or to
/// `public` if none is listed.
pub fn add_to_database(request: &mut DatabaseRequest, words: &[Privilege]) {
    for word in words {
        let meaning = meaning(*word);
        request.privileges.extend(meaning.database);
        if is_about_schemas(&meaning) {
            if request.schemas.is_empty() {
                request.schemas.insert("public".into(), SchemaRequest::default());
            }
            for schema in request.schemas.values_mut().filter(|schema| !schema.explicit) {
                add(schema, &meaning);
            }
        }
    }
}

/// Adds keywords to one schema.
pub fn add_to_schema(request: &mut SchemaRequest, words: &[Privilege]) {
    for word in words {
        add(request, &meaning_in_schema(*word));
    }
}

fn is_about_schemas(meaning: &Privileges) -> bool {
    !meaning.schema.is_empty()
}

fn add(request: &mut SchemaRequest, meaning: &Privileges) {
    let parts: [(&mut BTreeSet<&'static str>, &[&'static str]); 4] = [
        (&mut request.schema, meaning.schema),
        (&mut request.tables, meaning.tables),
        (&mut request.sequences, meaning.sequences),
        (&mut request.functions, meaning.functions),
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
        let mut request = DatabaseRequest::default();
        add_to_database(
            &mut request,
            &[Privilege::Connect, Privilege::Temp, Privilege::All],
        );
        assert_eq!(
            request.privileges,
            BTreeSet::from(["CONNECT", "CREATE", "TEMPORARY"])
        );
        assert!(request.schemas.is_empty());
    }

    #[test]
    fn table_words_without_schemas_mean_public() {
        let mut request = DatabaseRequest::default();
        add_to_database(&mut request, &[Privilege::Read]);
        let public = &request.schemas["public"];
        assert_eq!(public.tables, BTreeSet::from(["SELECT"]));
        assert_eq!(public.schema, BTreeSet::from(["USAGE"]));
    }

    #[test]
    fn table_words_apply_to_the_listed_schemas_only() {
        let mut request = DatabaseRequest::default();
        request.schemas.insert("app".into(), SchemaRequest::default());
        add_to_database(&mut request, &[Privilege::Select]);
        assert_eq!(request.schemas.keys().collect::<Vec<_>>(), ["app"]);
    }

    #[test]
    fn a_schema_with_words_of_its_own_gets_no_others() {
        let mut request = DatabaseRequest::default();
        let own = SchemaRequest {
            explicit: true,
            ..SchemaRequest::default()
        };
        request.schemas.insert("app".into(), own);
        request.schemas.insert("log".into(), SchemaRequest::default());
        add_to_database(&mut request, &[Privilege::Write]);
        assert!(request.schemas["app"].tables.is_empty());
        assert!(request.schemas["log"].tables.contains("INSERT"));
    }
}
