//! An instance is only observed: there is never anything to change.

use stanchion_api::PostgresInstance;

use super::observe::Current;

/// No change.
#[derive(Debug)]
pub struct Plan;

/// Plans no change, whatever was observed.
pub(super) fn plan(_: &PostgresInstance, _: &Current) -> Plan {
    Plan
}
