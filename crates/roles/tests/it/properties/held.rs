//! Which privileges roles hold, and which they may lose.

use stanchion_roles::expand::Desired;

use crate::support::Lab;

/// Kind, schema, object, role, privilege, and whether the role owns the object.
const HELD: &str = "
    SELECT 'object', c.relnamespace::regnamespace, c.relname, a.grantee::regrole, a.privilege_type, (a.grantee = c.relowner)::text
      FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace::regnamespace::text LIKE 's_'
    UNION ALL SELECT 'object', p.pronamespace::regnamespace, p.proname, a.grantee::regrole, a.privilege_type, (a.grantee = p.proowner)::text
      FROM pg_proc p, aclexplode(p.proacl) a WHERE p.pronamespace::regnamespace::text LIKE 's_'
    UNION ALL SELECT 'column', c.relnamespace::regnamespace, c.relname || '.' || t.attname, a.grantee::regrole, a.privilege_type, 'false'
      FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a WHERE c.relnamespace::regnamespace::text LIKE 's_'
    UNION ALL SELECT 'schema', n.oid::regnamespace, '', a.grantee::regrole, a.privilege_type, (a.grantee = n.nspowner)::text
      FROM pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a WHERE n.nspname LIKE 's_'
    UNION ALL SELECT 'member', NULL, m.roleid::regrole::text, m.member::regrole, '', 'false' FROM pg_auth_members m";

/// A privilege that a role holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    sort: String,
    schema: String,
    object: String,
    role: String,
    privilege: String,
    owner: bool,
}

impl Held {
    fn is_same(&self, other: &Self) -> bool {
        let key = |held: &Self| {
            (
                held.sort.clone(),
                held.schema.clone(),
                held.object.clone(),
                held.role.clone(),
                held.privilege.clone(),
            )
        };
        key(self) == key(other)
    }

    /// Whether a manifest may revoke it: within its scope, everything undeclared.
    fn may_be_taken_by(&self, desired: &Desired) -> bool {
        // A transfer of a schema moves everything that the owner holds.
        if self.owner {
            return true;
        }
        let role = desired.roles.get(&self.role);
        let exclusive = role.is_some_and(|role| role.exclusive);
        if self.sort == "member" {
            return exclusive || desired.roles.contains_key(&self.object);
        }
        let schema = desired.scope.schemas.get(&self.schema);
        exclusive || (role.is_some() && schema.is_some_and(|facets| facets.bindings))
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
        .filter(|held| !after.iter().any(|other| other.is_same(held)))
        .filter(|held| additive && !held.owner || !held.may_be_taken_by(desired))
        .collect()
}
