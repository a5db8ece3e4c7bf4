//! Privileges and sets of them.
//!
//! A set is 16 bits: the diff of 1,000 schemas compares some hundred thousand of them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The order is that of the names, so sets print alphabetically.
/// A privilege that PostgreSQL can grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Privilege {
    /// `ALTER SYSTEM` on a configuration parameter.
    #[serde(rename = "ALTER SYSTEM")]
    AlterSystem,
    /// `CONNECT` to a database.
    Connect,
    /// `CREATE` in a database, a schema or a tablespace.
    Create,
    /// `DELETE` from a relation.
    Delete,
    /// `EXECUTE` a routine.
    Execute,
    /// `INSERT` into a relation or a column.
    Insert,
    /// `MAINTAIN` a relation (PostgreSQL 17 and newer).
    Maintain,
    /// `REFERENCES` a relation or a column in a foreign key.
    References,
    /// `SELECT` from a relation, a column, a sequence or a large object.
    Select,
    /// `SET` a configuration parameter.
    Set,
    /// `TEMPORARY` tables in a database.
    Temporary,
    /// `TRIGGER` on a relation.
    Trigger,
    /// `TRUNCATE` a relation.
    Truncate,
    /// `UPDATE` a relation, a column, a sequence or a large object.
    Update,
    /// `USAGE` of a schema, a sequence, a type, a language, a wrapper or a server.
    Usage,
}

/// Name and ACL letter of each privilege, in the order of the enum.
const TABLE: [(Privilege, &str, char); 15] = [
    (Privilege::AlterSystem, "ALTER SYSTEM", 'A'),
    (Privilege::Connect, "CONNECT", 'c'),
    (Privilege::Create, "CREATE", 'C'),
    (Privilege::Delete, "DELETE", 'd'),
    (Privilege::Execute, "EXECUTE", 'X'),
    (Privilege::Insert, "INSERT", 'a'),
    (Privilege::Maintain, "MAINTAIN", 'm'),
    (Privilege::References, "REFERENCES", 'x'),
    (Privilege::Select, "SELECT", 'r'),
    (Privilege::Set, "SET", 's'),
    (Privilege::Temporary, "TEMPORARY", 'T'),
    (Privilege::Trigger, "TRIGGER", 't'),
    (Privilege::Truncate, "TRUNCATE", 'D'),
    (Privilege::Update, "UPDATE", 'w'),
    (Privilege::Usage, "USAGE", 'U'),
];

impl Privilege {
    /// Every privilege, in alphabetical order.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(privilege, ..)| *privilege)
    }

    /// The SQL keyword.
    pub fn name(self) -> &'static str {
        TABLE
            .iter()
            .find(|(privilege, ..)| *privilege == self)
            .map_or("", |(_, name, _)| name)
    }

    /// The privilege that PostgreSQL writes as this letter in an ACL.
    pub fn from_letter(letter: char) -> Option<Self> {
        TABLE
            .iter()
            .find(|(.., l)| *l == letter)
            .map(|(privilege, ..)| *privilege)
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of privileges.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Privileges(u16);

impl Privileges {
    /// No privilege.
    pub const NONE: Self = Self(0);

    /// The set of the given privileges.
    pub const fn of(privileges: &[Privilege]) -> Self {
        let mut bits = 0;
        let mut rest = privileges;
        while let [first, tail @ ..] = rest {
            bits |= first.bit();
            rest = tail;
        }
        Self(bits)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the privilege is in the set.
    pub const fn contains(self, privilege: Privilege) -> bool {
        self.0 & privilege.bit() != 0
    }

    /// What is in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is in this set and not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Adds what is in the other set.
    pub fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Adds one privilege.
    pub fn insert(&mut self, privilege: Privilege) {
        self.0 |= privilege.bit();
    }

    /// The members, in alphabetical order.
    pub fn iter(self) -> impl Iterator<Item = Privilege> {
        Privilege::all().filter(move |privilege| self.contains(*privilege))
    }
}

impl FromIterator<Privilege> for Privileges {
    fn from_iter<I: IntoIterator<Item = Privilege>>(privileges: I) -> Self {
        let mut set = Self::NONE;
        privileges.into_iter().for_each(|privilege| set.insert(privilege));
        set
    }
}

/// `DELETE, INSERT, SELECT`: as SQL lists them.
impl fmt::Display for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, privilege) in self.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            f.write_str(privilege.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

impl Serialize for Privileges {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_privilege_in_the_order_of_the_enum() {
        let names: Vec<_> = TABLE.iter().map(|(_, name, _)| *name).collect();
        assert!(names.is_sorted());
        assert!(
            TABLE
                .iter()
                .enumerate()
                .all(|(i, (privilege, ..))| *privilege as usize == i)
        );
    }

    #[test]
    fn a_set_prints_alphabetically() {
        let set: Privileges = [Privilege::Update, Privilege::Delete, Privilege::Select]
            .into_iter()
            .collect();
        assert_eq!(set.to_string(), "DELETE, SELECT, UPDATE");
        assert_eq!(
            set.without(Privileges::of(&[Privilege::Select])).to_string(),
            "DELETE, UPDATE"
        );
    }
}
