//! Values of ALTER ROLE … SET.
//!
//! PostgreSQL stores most settings as written. A few are lists of names, which PostgreSQL splits and quotes one by one:
//! `search_path` set to `'app, public'` would be a single schema of that odd name.

/// The settings whose value is a list of names (`GUC_LIST_QUOTE` in PostgreSQL's sources).
const LISTS: [&str; 6] = [
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
];

/// Name and value in the form that PostgreSQL stores.
pub(crate) fn canonical(parameter: &str, value: &str) -> (String, String) {
    let parameter = parameter.to_ascii_lowercase();
    let value = match list(&parameter, value) {
        Some(names) => names
            .iter()
            .map(|name| as_identifier(name))
            .collect::<Vec<_>>()
            .join(", "),
        None => value.to_owned(),
    };
    (parameter, value)
}

/// The names of a list setting, unquoted; `None` for any other setting.
pub(crate) fn list(parameter: &str, value: &str) -> Option<Vec<String>> {
    LISTS.contains(&parameter).then(|| {
        let names = split(value);
        // PostgreSQL keeps an empty list as a list of one empty name.
        if names.is_empty() {
            vec![String::new()]
        } else {
            names
        }
    })
}

fn split(value: &str) -> Vec<String> {
    let mut names = vec![];
    let mut rest = value.trim_start();
    while !rest.is_empty() {
        let (name, after) = next(rest);
        names.push(name);
        rest = after.trim_start().strip_prefix(',').unwrap_or(after).trim_start();
    }
    names
}

/// The first name of a list and the rest.
fn next(list: &str) -> (String, &str) {
    if let Some(quoted) = list.strip_prefix('"') {
        let mut name = String::new();
        let mut chars = quoted.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if c != '"' {
                name.push(c);
            } else if chars.next_if(|(_, next)| *next == '"').is_some() {
                name.push('"');
            } else {
                return (name, quoted.get(at + 1..).unwrap_or_default());
            }
        }
        return (name, "");
    }
    let (name, after) = list.split_at(list.find(',').unwrap_or(list.len()));
    (name.trim_end().to_ascii_lowercase(), after)
}

/// Quotes a name only where necessary, as PostgreSQL prints it.
fn as_identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_taken_apart_and_other_values_are_not() {
        assert_eq!(
            canonical("Search_Path", "App ,\"$user\", \"Odd, \"\"one\""),
            (
                "search_path".to_owned(),
                "app, \"$user\", \"Odd, \"\"one\"".to_owned()
            )
        );
        assert_eq!(canonical("search_path", "").1, "\"\"");
        assert_eq!(canonical("work_mem", "64MB").1, "64MB");
        assert_eq!(canonical("app.tags", "a, B").1, "a, B");
    }

    #[test]
    fn the_canonical_form_is_stable() {
        for value in ["", "a", "a, b", "\"A b\",c"] {
            let once = canonical("search_path", value);
            assert_eq!(canonical(&once.0, &once.1), once);
        }
    }
}
