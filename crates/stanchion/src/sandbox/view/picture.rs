//! The scene as a picture for a terminal: a total bar, a line with the steps of each object, the last events.

use std::fmt::Write as _;
use std::time::Duration;

use super::super::scene::{Note, Scene, Thing};

/// Width of the total bar.
const WIDE: usize = 40;
/// Width of the bar of an object.
const NARROW: usize = 8;
/// Length at which a line with steps is wrapped.
const LINE: usize = 110;
/// Number of events.
const NOTES: usize = 6;

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const FAINT: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// The lines of the picture.
pub(super) fn draw(scene: &Scene, elapsed: Duration) -> Vec<String> {
    let (done, all) = scene.progress();
    let ready = scene.things.iter().filter(|thing| thing.is_ready()).count();
    let mut lines = vec![
        String::new(),
        format!(
            "{} {ready} of {} ready, {:.1} s",
            bar(done, all, WIDE),
            scene.things.len(),
            elapsed.as_secs_f32()
        ),
        String::new(),
    ];
    let widest = scene.things.iter().map(|thing| thing.name.len()).max();
    let objects = scene.things.iter();
    lines.extend(objects.flat_map(|thing| object(thing, widest.unwrap_or(0))));
    lines.push(String::new());
    let skipped = scene.notes.len().saturating_sub(NOTES);
    lines.extend(scene.notes.iter().skip(skipped).map(event));
    lines
}

/// The text that draws the lines over the previous picture. The terminal cuts long lines instead of wrapping them, or
/// the next picture would not start at the beginning of this one.
pub(super) fn over(height: usize, lines: &[String]) -> String {
    let mut text = String::new();
    if height > 0 {
        let _ = write!(text, "\x1b[{height}A\x1b[J");
    }
    text.push_str("\x1b[?7l");
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
    text.push_str("\x1b[?7h");
    text
}

/// An object: its progress, its phase, its steps, and why it does not proceed.
fn object(thing: &Thing, widest: usize) -> Vec<String> {
    let done = thing.steps.iter().filter(|(_, done)| *done).count();
    let phase = thing.phase.as_deref().unwrap_or_default();
    let mut line = format!(
        "  {:widest$}  {} {phase:9}",
        thing.name,
        bar(done, thing.steps.len(), NARROW)
    );
    // The indentation of the wrapped steps; colours have no width.
    let indent = 2 + widest + 2 + NARROW + 1;
    let mut length = indent + phase.len().max(9);
    let mut lines = Vec::new();
    for (step, done) in &thing.steps {
        let (colour, mark) = if *done { (GREEN, "✓") } else { (FAINT, "·") };
        let width = step.len() + 3;
        if length + width > LINE {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            length = indent;
        }
        let _ = write!(line, " {colour}{mark} {step}{PLAIN}");
        length += width;
    }
    if let Some(message) = thing.message.as_deref().filter(|_| !thing.is_ready()) {
        let _ = write!(line, "  {message}");
    }
    lines.push(line);
    lines
}

fn event(note: &Note) -> String {
    let colour = if note.is_warning { RED } else { FAINT };
    format!("  {colour}{}  {}: {}{PLAIN}", note.about, note.reason, note.text)
}

fn bar(done: usize, all: usize, wide: usize) -> String {
    let full = (done * wide).checked_div(all).unwrap_or(0);
    let (full, empty) = ("█".repeat(full), "░".repeat(wide - full));
    format!("{GREEN}{full}{PLAIN}{FAINT}{empty}{PLAIN}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_when_all_is_done_and_never_longer() {
        let blocks = |text: &str| text.matches('█').count();
        assert_eq!(blocks(&bar(0, 0, 8)), 0);
        assert_eq!(blocks(&bar(1, 4, 8)), 2);
        assert_eq!(blocks(&bar(4, 4, 8)), 8);
    }

    #[test]
    fn a_picture_takes_the_place_of_the_last_one() {
        assert!(over(0, &["a".to_owned()]).starts_with("\x1b[?7l"));
        assert!(over(3, &["a".to_owned()]).starts_with("\x1b[3A\x1b[J"));
    }

    #[test]
    fn many_steps_take_several_lines() {
        let thing = Thing {
            name: "SupabaseProject/shop".into(),
            phase: Some("DeployingComponents".into()),
            message: None,
            steps: vec![("AStepWithALongName", true); 6],
        };
        let lines = object(&thing, 24);
        assert_eq!(lines.len(), 3, "{lines:#?}");
        assert_eq!(lines.concat().matches('✓').count(), 6);
    }

    #[test]
    fn an_object_that_waits_says_why() {
        let thing = Thing {
            name: "PostgresUser/alice".into(),
            phase: Some("Failed".into()),
            message: Some("no such Secret".into()),
            steps: vec![("Ready", false)],
        };
        let picture = draw(&Scene::new(vec![thing], Vec::new()), Duration::ZERO).join("\n");
        assert!(picture.contains("0 of 1 ready"), "{picture}");
        assert!(picture.contains("no such Secret"), "{picture}");
    }
}
