//! Events, each sent once.

use stanchion_api::supabase::Phase;
use stanchion_kernel::events::EventRecord;

use super::super::apply::Applied;

/// The events of a complete reconcile.
pub(super) fn of(applied: &Applied, previous: Option<Phase>, phase: Phase) -> Vec<EventRecord> {
    let runs = phase == Phase::Running && previous != Some(Phase::Running);
    let rows = [
        (
            applied.keys_written,
            "SecretsCreated",
            "JWT secrets generated successfully",
        ),
        (
            !applied.initialised.is_empty(),
            "DatabaseInitialized",
            "PostgreSQL database initialized successfully",
        ),
        (runs, "PhaseChanged", "SupabaseProject is now Running"),
    ];
    let events = rows.into_iter().filter(|(happened, ..)| *happened);
    events
        .map(|(_, reason, note)| EventRecord::normal(reason, "Reconcile", note))
        .collect()
}
