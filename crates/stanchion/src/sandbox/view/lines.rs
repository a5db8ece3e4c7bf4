//! The changes from one scene to the next, one line each.

use std::time::Duration;

use super::super::scene::{Scene, Thing};

/// The lines.
pub(super) fn changes(before: &Scene, now: &Scene, elapsed: Duration) -> Vec<String> {
    let at = format!("{:6.1} s", elapsed.as_secs_f32());
    let mut lines = Vec::new();
    for note in now.said(before) {
        let mark = if note.is_warning { "! " } else { "" };
        lines.push(format!(
            "{at}  {}  {mark}{}: {}",
            note.about, note.reason, note.text
        ));
    }
    for thing in now.changed(before) {
        lines.push(format!("{at}  {}  {}", thing.name, state(thing)));
    }
    for thing in now.gone(before) {
        lines.push(format!("{at}  {}  gone", thing.name));
    }
    lines
}

fn state(thing: &Thing) -> String {
    let done: Vec<&str> = thing
        .steps
        .iter()
        .filter(|(_, done)| *done)
        .map(|&(step, _)| step)
        .collect();
    let word = match &thing.phase {
        Some(phase) => phase.as_str(),
        None if thing.is_ready() => "Ready",
        None => "waiting",
    };
    let why = thing.message.as_deref().filter(|_| !thing.is_ready());
    [
        Some(word.to_owned()),
        (!done.is_empty()).then(|| format!("[{}]", done.join(" "))),
        why.map(str::to_owned),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(done: bool) -> Scene {
        let thing = Thing {
            name: "PostgresUser/alice".into(),
            phase: Some(if done { "Ready" } else { "Failed" }.into()),
            message: Some("no such Secret".into()),
            steps: vec![("DatabaseConnected", true), ("Ready", done)],
        };
        Scene::new(vec![thing], Vec::new())
    }

    #[test]
    fn a_line_says_how_far_it_is_and_why_not_further() {
        let lines = changes(&Scene::default(), &scene(false), Duration::from_millis(1500));
        assert_eq!(
            lines,
            ["   1.5 s  PostgresUser/alice  Failed [DatabaseConnected] no such Secret"]
        );
        let lines = changes(&scene(false), &scene(true), Duration::from_secs(20));
        assert_eq!(
            lines,
            ["  20.0 s  PostgresUser/alice  Ready [DatabaseConnected Ready]"]
        );
        assert!(changes(&scene(true), &scene(true), Duration::ZERO).is_empty());
    }
}
