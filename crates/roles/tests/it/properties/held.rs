//! Which privileges roles hold, and which they may lose.

use stanchion_roles::expand::Desired;

use crate::support::Lab;

/// Kind, schema, object, role, privilege, whether the role owns the object, and whether it may pass the privilege on.
const HELD: &str = "
    SELECT 'object', c.relnamespace::regnamespace, c.relname, a.grantee::regrole, a.privilege_type, (a.grantee = c.relowner)::text, a.is_grantable::text
      FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace::regnamespace::text LIKE 's_'
    UNION ALL SELECT 'object', p.pronamespace::regnamespace, p.proname, a.grantee::regrole, a.privilege_type, (a.grantee = p.proowner)::text, a.is_grantable::text
      FROM pg_proc p, aclexplode(p.proacl) a WHERE p.pronamespace::regnamespace::text LIKE 's_'
    UNION ALL SELECT 'column', c.relnamespace::regnamespace, c.relname || '.' || t.attname, a.grantee::regrole, a.privilege_type, (a.grantee = c.relowner)::text, a.is_grantable::text
      FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a WHERE c.relnamespace::regnamespace::text LIKE 's_'
    UNION ALL SELECT 'schema', n.oid::regnamespace, '', a.grantee::regrole, a.privilege_type, (a.grantee = n.nspowner)::text, a.is_grantable::text
      FROM pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a WHERE n.nspname LIKE 's_'
    UNION ALL SELECT 'default', nullif(d.defaclnamespace, 0)::regnamespace, d.defaclrole::regrole || ' ' || d.defaclobjtype::text, a.grantee::regrole,
        a.privilege_type, 'false', a.is_grantable::text
      FROM pg_default_acl d, aclexplode(d.defaclacl) a WHERE a.grantee NOT IN (0, d.defaclrole)
    UNION ALL SELECT 'member', NULL, m.roleid::regrole::text, m.member::regrole, '', 'false', m.admin_option::text FROM pg_auth_members m";

/// A privilege that a role holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    sort: String,
    schema: String,
    object: String,
    role: String,
    privilege: String,
    owner: bool,
    option: bool,
}

impl Held {
    /// Whether the role holds, afterwards, the same and may pass it on, if it could.
    fn is_kept_by(&self, other: &Self) -> bool {
        let key = |held: &Self| {
            (
                held.sort.clone(),
                held.schema.clone(),
                held.object.clone(),
                held.role.clone(),
                held.privilege.clone(),
            )
        };
        key(self) == key(other) && (other.option || !self.option)
    }

    /// Whether a manifest may revoke it: within its scope, everything undeclared.
    fn may_be_taken_by(&self, desired: &Desired) -> bool {
        // A transfer of a schema moves everything that the owner holds. The owner of a table can grant itself its columns;
        // pg_shdepend does not record that it holds them.
        if self.owner {
            return true;
        }
        let role = desired.roles.get(&self.role);
        let exclusive = role.is_some_and(|role| role.exclusive);
        if self.sort == "member" {
            return exclusive || desired.roles.contains_key(&self.object);
        }
        if self.sort == "column" {
            return exclusive || self.is_in_a_column_rule(desired);
        }
        let schema = desired.scope.schemas.get(&self.schema);
        let managed = match (self.sort.as_str(), self.schema.as_str()) {
            ("default", "") => self.owner_is_managed(desired),
            _ => schema.is_some_and(|facets| facets.bindings),
        };
        exclusive || (role.is_some() && managed)
    }

    /// A manifest manages the columns of a relation only if it names one of them.
    fn is_in_a_column_rule(&self, desired: &Desired) -> bool {
        let relation = self.object.split_once('.').map(|(relation, _)| relation);
        desired.grants.keys().any(|key| {
            !key.columns.is_empty()
                && key.grantee == self.role
                && key.schema.as_deref() == Some(&self.schema)
                && key.name.as_deref() == relation
        })
    }

    /// Whether a manifest manages the default privileges of an owner in all schemas.
    fn owner_is_managed(&self, desired: &Desired) -> bool {
        let owner = self.object.split_once(' ').map_or("", |(owner, _)| owner);
        let mut everywhere = desired
            .default_privileges
            .keys()
            .filter(|key| key.schema.is_none());
        desired.scope.roles.contains(owner) || everywhere.any(|key| key.owner == owner)
    }
}

pub(super) async fn held(lab: &Lab) -> Vec<Held> {
    let rows = lab.database.query(&lab.text(HELD)).await;
    let mut held = vec![];
    for row in rows {
        let text = |column: usize| {
            let value = row.get(column).cloned().flatten().unwrap_or_default();
            lab.generic(&value)
        };
        held.push(Held {
            sort: text(0),
            schema: text(1),
            object: text(2),
            role: text(3),
            privilege: text(4),
            owner: text(5) == "true",
            option: text(6) == "true",
        });
    }
    // Roles of other tests are on the same server.
    held.retain(|held| held.sort != "member" || held.object.starts_with("P_"));
    held
}

/// Privileges that were revoked outside of the manifest's scope.
pub(super) fn stolen<'a>(
    before: &'a [Held],
    after: &[Held],
    desired: &Desired,
    additive: bool,
) -> Vec<&'a Held> {
    before
        .iter()
        .filter(|held| !after.iter().any(|other| held.is_kept_by(other)))
        .filter(|held| additive && !held.owner || !held.may_be_taken_by(desired))
        .collect()
}
