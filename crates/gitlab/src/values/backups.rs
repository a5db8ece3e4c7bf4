//! The backup schedule.

use serde_json::{Value, json};

use super::Input;

pub(super) fn values(input: &Input<'_>) -> Value {
    let own = input.spec.backup_schedule.as_ref();
    own.or(input.profile.backup_schedule.as_ref()).map_or(Value::Null, |schedule| {
        json!({ "gitlab": { "toolbox": { "backups": { "cron": { "enabled": true, "schedule": schedule } } } } })
    })
}
