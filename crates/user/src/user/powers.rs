//! Powerful attributes: an instance has to allow them, and a role that the operator created loses one that it does not allow.

use stanchion_api::instance::Attribute;
use stanchion_kernel::marks::Origin;
use stanchion_postgres::Server;
use stanchion_postgres::server::BOUND_CREATEROLE;

use super::catalog::{Catalog, Reach, RoleFacts};
use super::guards::{claim, claimant};
use super::target::Wanted;
use crate::rules::{Rules, Side};

/// The attributes and their names in a spec.
const POWERS: [(Attribute, &str); 4] = [
    (Attribute::Superuser, "superuser"),
    (Attribute::Replication, "replication"),
    (Attribute::BypassRls, "bypassRLS"),
    (Attribute::CreateRole, "createRole"),
];

/// The powerful attributes among these, and their names in a spec.
pub(super) fn among(reach: Reach) -> impl Iterator<Item = (Attribute, &'static str)> {
    let has = [
        reach.superuser,
        reach.replication,
        reach.bypass_rls,
        reach.create_role,
    ];
    let powers = POWERS.into_iter().zip(has).filter(|(_, has)| *has);
    powers.map(|(power, _)| power)
}

/// Whether a role of this origin loses the attribute: its instance allowed it once, or somebody else gave it. No instance
/// allows powers on the default server, so what a role has there is a person's decision. What the administrator cannot take
/// is not planned: it would fail together with a new password.
pub(super) fn is_taken(name: &str, origin: Origin, catalog: &Catalog) -> bool {
    let power = POWERS.iter().find(|(_, power)| *power == name);
    power.is_some_and(|(attribute, _)| {
        is_forbidden(*attribute, origin, &catalog.viewer.rules) && may_take(*attribute, &catalog.server)
    })
}

/// The attributes that the role keeps although its instance does not allow them: the administrator cannot take them.
pub(super) fn kept(wanted: &Wanted, catalog: &Catalog) -> Vec<&'static str> {
    let (Some(role), Ok(origin)) = (&catalog.role, claim(&claimant(wanted), catalog)) else {
        return Vec::new();
    };
    let kept = among(own(role)).filter(|(attribute, _)| {
        is_forbidden(*attribute, origin, &catalog.viewer.rules) && !may_take(*attribute, &catalog.server)
    });
    kept.map(|(_, name)| name).collect()
}

/// The powers that a role has by its own attributes.
fn own(role: &RoleFacts) -> Reach {
    Reach {
        superuser: role.superuser,
        replication: role.replication,
        bypass_rls: role.bypass_rls,
        create_role: role.create_role,
    }
}

fn is_forbidden(attribute: Attribute, origin: Origin, rules: &Rules) -> bool {
    origin == Origin::Created && rules.side != Side::Default && !rules.attributes.contains(&attribute)
}

/// Whether the server lets the administrator take an attribute from a role. From 16 on it must have the attribute itself;
/// before, only a superuser takes anything but CREATEROLE.
fn may_take(attribute: Attribute, server: &Server) -> bool {
    let ours = server.attributes;
    let is_bound = server.version >= BOUND_CREATEROLE;
    ours.superuser
        || match attribute {
            Attribute::Superuser => false,
            Attribute::Replication => is_bound && ours.replication,
            Attribute::BypassRls => is_bound && ours.bypass_rls,
            Attribute::CreateRole => ours.create_role,
        }
}
