//! The table: one row for each object, in the width of the terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::assess::{Row, State};
use super::colour::paint;
use super::{Format, Overview, View};

/// The minimum width of the last column, however narrow the terminal is.
const LEAST: usize = 20;

/// One column: its title, and its value for a row.
type Column = (&'static str, fn(&Row) -> String);

fn columns(with_namespace: bool, wide: bool) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    if with_namespace {
        columns.push(("NAMESPACE", |row| row.namespace.clone()));
    }
    columns.push(("KIND", |row| row.kind.clone()));
    columns.push(("NAME", |row| row.name.clone()));
    columns.push(("STATE", |row| row.state.word().to_owned()));
    columns.push(("PHASE", |row| row.phase.clone().unwrap_or_else(|| "-".to_owned())));
    columns.push(("SINCE", |row| row.held.clone()));
    if wide {
        columns.push(("AGE", |row| row.age.clone()));
        columns.push(("REASON", |row| {
            row.reason.clone().unwrap_or_else(|| "-".to_owned())
        }));
        columns.push(("NEXT", |row| row.next.clone().unwrap_or_else(|| "-".to_owned())));
    }
    columns.push(("WAITS FOR", |row| row.waits_for.clone().unwrap_or_default()));
    columns
}

/// The table, what it could not show, and a summary line.
pub(super) fn render(overview: &Overview, with_namespace: bool, view: &View) -> String {
    let mut text = String::new();
    if overview.objects.is_empty() {
        if overview.unreadable.is_empty() {
            text.push_str("no objects\n");
        }
    } else {
        let columns = columns(with_namespace, view.format == Format::Wide);
        lines(&mut text, &columns, &overview.objects, view);
        let _ = writeln!(text, "\n{}", count(&overview.objects));
    }
    for unread in &overview.unreadable {
        let _ = writeln!(text, "not shown: {}: {}", unread.kind, unread.why.words());
    }
    text
}

/// Rows without titles, for changed objects.
pub(super) fn changed(rows: &[Row], with_namespace: bool, view: &View) -> String {
    let mut text = String::new();
    let columns = columns(with_namespace, view.format == Format::Wide);
    lines(&mut text, &columns, rows, view);
    text.split_once('\n')
        .map(|(_, rest)| rest.to_owned())
        .unwrap_or_default()
}

fn lines(text: &mut String, columns: &[Column], rows: &[Row], view: &View) {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| columns.iter().map(|(_, cell)| cell(row)).collect())
        .collect();
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, (title, _))| {
            let cells = cells.iter().filter_map(|line| line.get(at));
            cells
                .map(|cell| length(cell))
                .chain([length(title)])
                .max()
                .unwrap_or_default()
        })
        .collect();
    let last = columns.len().saturating_sub(1);
    let before: usize = widths.iter().take(last).map(|width| width + 3).sum();
    let room = view.width.map(|width| width.saturating_sub(before).max(LEAST));
    let titles: Vec<String> = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
    line(text, &titles, &widths, room, None, false);
    for (row, cells) in rows.iter().zip(&cells) {
        line(text, cells, &widths, room, Some(row.state), view.paint);
    }
}

fn line(
    text: &mut String,
    cells: &[String],
    widths: &[usize],
    room: Option<usize>,
    state: Option<State>,
    colours: bool,
) {
    let mut line = String::new();
    let last = cells.len().saturating_sub(1);
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let shown = if at == last {
            room.map_or_else(|| cell.clone(), |room| cut(cell, room))
        } else {
            format!("{cell}{}", " ".repeat(width.saturating_sub(length(cell)) + 3))
        };
        match state {
            Some(state) if cell == state.word() => line.push_str(&paint(&shown, state, colours)),
            _ => line.push_str(&shown),
        }
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// `7 objects: 1 Failed, 6 Ready`.
fn count(rows: &[Row]) -> String {
    let mut states: BTreeMap<State, usize> = BTreeMap::new();
    for row in rows {
        *states.entry(row.state).or_default() += 1;
    }
    let parts: Vec<String> = states
        .iter()
        .map(|(state, count)| format!("{count} {}", state.word()))
        .collect();
    let objects = if rows.len() == 1 { "object" } else { "objects" };
    format!("{} {objects}: {}", rows.len(), parts.join(", "))
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Cuts a text to this many characters and marks the cut.
pub(super) fn cut(text: &str, room: usize) -> String {
    if length(text) <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
