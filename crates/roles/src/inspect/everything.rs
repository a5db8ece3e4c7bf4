//! Inspects a whole database, for users without a manifest.

use stanchion_postgres::{Query, ReadSession};

use super::{Error, Needs, Unreadable, inspect};
use crate::facts::Facts;
use crate::model::ObjectType;

/// Roles and schemas, without those of PostgreSQL and temporary ones.
const NAMES: &str = "\
SELECT true, rolname::text FROM pg_roles WHERE rolname !~ '^pg_' AND oid <> 10
UNION ALL SELECT false, nspname::text FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
ORDER BY 1, 2";

/// Predefined roles can have members.
const GROUPS: &str = "SELECT rolname::text FROM pg_roles ORDER BY 1";

impl Needs {
    /// Everything about these roles and schemas.
    fn everything(roles: Vec<String>, groups: Vec<String>, schemas: Vec<String>) -> Self {
        Self {
            roles: roles.clone(),
            groups,
            managed: roles.clone(),
            holders: roles,
            schemas: schemas.clone(),
            contents: schemas,
            inventory: ObjectType::ALL
                .into_iter()
                .filter(|kind| kind.spec().in_schema)
                .collect(),
            database: true,
            ..Self::default()
        }
    }
}

/// Inspects all roles and schemas except the system's.
pub async fn inspect_everything(session: &mut ReadSession) -> Result<Facts, Error> {
    let names = session.snapshot(&[Query::new(NAMES), Query::new(GROUPS)]).await?;
    let [names, groups] = names.as_slice() else {
        return Ok(Facts::default());
    };
    let (mut roles, mut schemas) = (vec![], vec![]);
    for row in names {
        let is_role: bool = row.try_get(0).map_err(|error| Unreadable::new("names", &error))?;
        let name: String = row.try_get(1).map_err(|error| Unreadable::new("names", &error))?;
        if is_role {
            roles.push(name);
        } else {
            schemas.push(name);
        }
    }
    let groups = groups
        .iter()
        .map(|row| row.try_get(0).map_err(|error| Unreadable::new("names", &error)))
        .collect::<Result<_, _>>()?;
    inspect(session, &Needs::everything(roles, groups, schemas)).await
}
