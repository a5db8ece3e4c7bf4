//! Decodes roles, their memberships, and dependent objects.

use secrecy::SecretString;
use stanchion_postgres::Row;

use super::{Decoder, Unreadable, get};
use crate::facts::{Dependency, Edge, RoleFacts};
use crate::guc;
use crate::manifest::canonical_timestamp;
use crate::model::RoleState;

impl Decoder {
    pub(in crate::inspect) fn verifiers(&mut self, rows: &[Row]) -> Result<(), Unreadable> {
        for row in rows {
            let name: String = get(row, 0, "passwords")?;
            let verifier: Option<String> = get(row, 1, "passwords")?;
            if let Some(role) = self.facts.roles.get_mut(&name) {
                role.verifier = Some(verifier.map_or_else(SecretString::default, SecretString::from));
            }
        }
        Ok(())
    }

    pub(super) fn role(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "roles";
        let expires: Option<String> = get(row, 10, about)?;
        let config: Option<Vec<String>> = get(row, 12, about)?;
        let config = config.unwrap_or_default();
        let state = RoleState {
            login: get(row, 2, about)?,
            superuser: get(row, 3, about)?,
            createdb: get(row, 4, about)?,
            createrole: get(row, 5, about)?,
            inherit: get(row, 6, about)?,
            replication: get(row, 7, about)?,
            bypassrls: get(row, 8, about)?,
            connection_limit: get(row, 9, about)?,
            comment: get(row, 11, about)?,
            password_valid_until: expires.map(|text| canonical_timestamp(&text).unwrap_or(text)),
            config: config
                .iter()
                .filter_map(|setting| setting.split_once('='))
                .map(|(name, value)| guc::canonical(name, value))
                .collect(),
        };
        let role = RoleFacts {
            oid: get(row, 0, about)?,
            state,
            verifier: None,
        };
        self.facts.roles.insert(get(row, 1, about)?, role);
        Ok(())
    }

    pub(super) fn member(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "memberships";
        self.facts.memberships.push(Edge {
            role: get(row, 0, about)?,
            member: get(row, 1, about)?,
            grantor: get(row, 2, about)?,
            by_bootstrap: get(row, 3, about)?,
            admin: get(row, 4, about)?,
            inherit: get(row, 5, about)?,
            set: get(row, 6, about)?,
        });
        Ok(())
    }

    pub(super) fn ancestor(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "memberships above";
        let edge = (get(row, 0, about)?, get(row, 1, about)?);
        self.facts.ancestry.push(edge);
        Ok(())
    }

    pub(super) fn dependency(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "dependencies";
        self.facts
            .drops
            .entry(get(row, 0, about)?)
            .or_default()
            .dependencies
            .push(Dependency {
                database: get(row, 1, about)?,
                owned: get(row, 2, about)?,
                reassigned: get(row, 3, about)?,
                count: get(row, 4, about)?,
                example: get(row, 5, about)?,
            });
        Ok(())
    }

    pub(super) fn sessions(&mut self, row: &Row) -> Result<(), Unreadable> {
        let about = "sessions";
        self.facts.drops.entry(get(row, 0, about)?).or_default().sessions = get(row, 1, about)?;
        Ok(())
    }
}
