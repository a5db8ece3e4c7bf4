//! What an instance must allow before a role may have it. Whoever may create an object in a namespace must not
//! become an administrator of the server by it: not by an attribute, not by a membership, not by a parameter.

use std::collections::BTreeMap;

use stanchion_api::instance::Attribute;
use stanchion_api::user::{Membership, Role};
use stanchion_kernel::Problem;

use crate::user::catalog::Reach;

/// Parameters that only a superuser may set, because they lead around the server's checks. The administrator would
/// set them for anybody.
const POWERFUL: &[&str] = &[
    "allow_system_table_mods",
    "dynamic_library_path",
    "extension_control_path",
    "ignore_checksum_failure",
    "lo_compat_privileges",
    "session_preload_libraries",
    "session_replication_role",
    "zero_damaged_pages",
];

/// Powerful attributes and parameters need the instance's permission.
pub fn check_role(role: &Role, allowed: &[Attribute]) -> Result<(), Problem> {
    let asked = [
        (role.superuser, Attribute::Superuser, "superuser"),
        (role.replication, Attribute::Replication, "replication"),
        (role.bypass_rls, Attribute::BypassRls, "bypassRLS"),
        (role.create_role, Attribute::CreateRole, "createRole"),
    ];
    for (wish, attribute, name) in asked {
        if wish == Some(true) && !allowed.contains(&attribute) {
            return Err(refused(&format!("role.{name}"), name));
        }
    }
    let powerful = |name: &&String| POWERFUL.iter().any(|known| name.eq_ignore_ascii_case(known));
    match role.parameters.keys().find(powerful) {
        Some(name) if !allowed.contains(&Attribute::Superuser) => {
            Err(refused(&format!("role.parameters.{name}"), "superuser"))
        }
        _ => Ok(()),
    }
}

/// A member may do what the role may do, and what that one's own memberships allow.
pub fn check_memberships(
    member_of: &[Membership],
    reach: &BTreeMap<String, Reach>,
    allowed: &[Attribute],
) -> Result<(), Problem> {
    for membership in member_of {
        let reach = reach.get(&membership.role).copied().unwrap_or_default();
        let powers = [
            (reach.superuser, Attribute::Superuser, "superuser"),
            (reach.replication, Attribute::Replication, "replication"),
            (reach.bypass_rls, Attribute::BypassRls, "bypassRLS"),
            (reach.create_role, Attribute::CreateRole, "createRole"),
        ];
        for (has, attribute, name) in powers {
            if has && !allowed.contains(&attribute) {
                let what = format!("memberOf: {:?} comes with {name}, which", membership.role);
                return Err(refused(&what, name));
            }
        }
    }
    Ok(())
}

fn refused(what: &str, attribute: &str) -> Problem {
    Problem::human(
        "AttributeNotAllowed",
        format!("{what} is not allowed on this instance; add {attribute} to its spec.allowedAttributes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member_of(role: &str) -> Vec<Membership> {
        vec![Membership {
            role: role.into(),
            admin: false,
            inherit: None,
            set: None,
        }]
    }

    #[test]
    fn nothing_leads_to_superuser_unless_the_instance_allows_it() {
        let attribute = Role {
            superuser: Some(true),
            ..Role::default()
        };
        let parameter = Role {
            parameters: [("Session_Preload_Libraries".to_owned(), "x".to_owned())].into(),
            ..Role::default()
        };
        for role in [&attribute, &parameter] {
            let problem = check_role(role, &[Attribute::CreateRole]).unwrap_err();
            assert_eq!(problem.reason, "AttributeNotAllowed");
            check_role(role, &[Attribute::Superuser]).unwrap();
        }
        let reach = BTreeMap::from([(
            "dba".to_owned(),
            Reach {
                superuser: true,
                ..Reach::default()
            },
        )]);
        let problem = check_memberships(&member_of("dba"), &reach, &[]).unwrap_err();
        assert!(
            problem.message.contains("\"dba\" comes with superuser"),
            "{problem}"
        );
        check_memberships(&member_of("dba"), &reach, &[Attribute::Superuser]).unwrap();
        check_memberships(&member_of("readers"), &reach, &[]).unwrap();
    }

    #[test]
    fn what_is_refused_or_left_alone_needs_no_permission() {
        let role = Role {
            superuser: Some(false),
            create_database: Some(true),
            parameters: [("work_mem".to_owned(), "1MB".to_owned())].into(),
            ..Role::default()
        };
        check_role(&role, &[]).unwrap();
    }
}
