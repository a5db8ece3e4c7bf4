//! The progress of a key rotation.

use jiff::Timestamp;
use stanchion_api::supabase::KeysStatus;

use super::super::target::Wanted;

/// What published keys wait for. Those of a second rotation would take the place of the keys that the first one promised
/// to accept.
pub(super) fn published(wanted: &Wanted, keys: &KeysStatus, now: Timestamp) -> String {
    let words = "new keys are published and accepted by every component that has rolled out; they are used once all have";
    let requested = keys.rotated_at.and_then(|at| at.checked_add(wanted.grace).ok());
    let until = keys
        .previous_until
        .map(|until| requested.map_or(until, |at| at.min(until)));
    match until.filter(|until| *until > now) {
        Some(until) => format!(
            "{words}, but not before {until}: the keys of the rotation before are accepted until then. A shorter \
             jwt.rotationGracePeriod ends that earlier"
        ),
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::json;

    use super::super::super::validate::validate;
    use super::*;

    fn second(number: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + number).unwrap()
    }

    #[test]
    fn a_second_rotation_says_until_when_it_waits_for_the_first() {
        let project = json!({
            "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject",
            "metadata": { "name": "shop", "namespace": "ns" },
            "spec": {
                "projectId": "shop",
                "database": { "secretRef": { "name": "db" } }, "storage": { "secretRef": { "name": "s3" } },
            },
        });
        let mut wanted = validate(&serde_json::from_value(project).unwrap()).unwrap();
        wanted.grace = SignedDuration::from_secs(100);
        let first = KeysStatus {
            published_at: Some(second(0)),
            ..KeysStatus::default()
        };
        let says = |wanted: &Wanted, keys: &KeysStatus, now| published(wanted, keys, second(now));
        let alone = says(&wanted, &first, 0);
        assert!(!alone.contains("not before"), "{alone}");
        let second_rotation = KeysStatus {
            rotated_at: Some(second(0)),
            previous_until: Some(second(100)),
            ..first
        };
        let waits = says(&wanted, &second_rotation, 50);
        let until = format!("but not before {}", second(100));
        assert!(waits.contains(&until), "{waits}");
        assert!(waits.contains("jwt.rotationGracePeriod"), "{waits}");
        assert_eq!(says(&wanted, &second_rotation, 100), alone);
        wanted.grace = SignedDuration::from_secs(60);
        let shorter = says(&wanted, &second_rotation, 50);
        assert!(shorter.contains(&second(60).to_string()), "{shorter}");
        assert_eq!(says(&wanted, &second_rotation, 60), alone);
    }
}
