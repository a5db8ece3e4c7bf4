//! Parses `grantee=privileges/grantor`, PostgreSQL's text of an ACL entry.
//!
//! The text is the cheapest form to fetch: a tenth of the rows of `aclexplode`, and names instead of oids that need a
//! lookup.

use crate::facts::{AclEntry, Names};
use crate::model::{Privilege, Privileges};

/// Parses one entry. `None` for text that no known PostgreSQL writes.
pub(super) fn parse(text: &str, names: &mut Names) -> Option<AclEntry> {
    let (grantee, rest) = name(text)?;
    let rest = rest.strip_prefix('=')?;
    let (letters, grantor) = rest.split_once('/')?;
    let (grantor, rest) = name(grantor)?;
    if !rest.is_empty() {
        return None;
    }
    let (mut privileges, mut grantable) = (Privileges::NONE, Privileges::NONE);
    let mut last = None;
    for letter in letters.chars() {
        if letter == '*' {
            grantable.insert(last?);
        } else {
            // A manifest cannot mention a privilege of a future version.
            last = Privilege::from_letter(letter);
            privileges.add(last.into_iter().collect());
        }
    }
    let grantee = if grantee.is_empty() {
        crate::facts::RoleId::PUBLIC
    } else {
        names.id(&grantee)
    };
    Some(AclEntry {
        grantee,
        grantor: names.id(&grantor),
        privileges,
        grantable,
    })
}

/// A name, possibly quoted, and the rest.
fn name(text: &str) -> Option<(std::borrow::Cow<'_, str>, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(['=', '/']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        return Some((name.into(), rest));
    };
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name.into(), after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::RoleId;

    fn read(text: &str) -> Option<(String, String, String, String)> {
        let mut names = Names::default();
        let entry = parse(text, &mut names)?;
        let grantee = if entry.grantee == RoleId::PUBLIC {
            String::new()
        } else {
            names.name(entry.grantee).to_owned()
        };
        Some((
            grantee,
            names.name(entry.grantor).to_owned(),
            entry.privileges.to_string(),
            entry.grantable.to_string(),
        ))
    }

    #[test]
    fn entries_of_all_shapes() {
        let expect = |a: &str, b: &str, c: &str, d: &str| {
            Some((a.to_owned(), b.to_owned(), c.to_owned(), d.to_owned()))
        };
        assert_eq!(
            read("app=r*w/owner"),
            expect("app", "owner", "SELECT, UPDATE", "SELECT")
        );
        assert_eq!(read("=X/postgres"), expect("", "postgres", "EXECUTE", ""));
        assert_eq!(
            read("\"app-editor\"=arwd/\"own=er/\""),
            expect("app-editor", "own=er/", "DELETE, INSERT, SELECT, UPDATE", "")
        );
        assert_eq!(read("\"a\"\"b\"=U/x"), expect("a\"b", "x", "USAGE", ""));
        assert_eq!(read("\"\"\"\"=U/x"), expect("\"", "x", "USAGE", ""));
        assert_eq!(read("app=/owner"), expect("app", "owner", "", ""));
        assert_eq!(
            read("PUBLIC=r/owner"),
            expect("PUBLIC", "owner", "SELECT", "").map(|mut e| {
                e.0 = String::new();
                e
            })
        );
    }

    #[test]
    fn what_is_no_entry_is_none() {
        for text in ["", "app", "app=r", "\"app=r/x", "=*/x"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
