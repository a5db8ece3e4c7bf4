//! `--watch`: shows every change until Ctrl-C.
//!
//! Watches only signal that something has changed; then everything is read again. So there is one way to read, and the
//! output is never older than the change that it shows.

use std::slice;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;
use kube::runtime::{WatchStreamExt as _, watcher};

use super::assess::Row;
use super::kinds::{Kind, Subject, with_status};
use super::{Format, StatusError, View, answer, is_terminal, overview, render, table};
use crate::cluster::Cluster;
use crate::output;

/// Changes within this time are shown together.
const TOGETHER: Duration = Duration::from_millis(200);
/// Clears the terminal and its scrollback buffer.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Shows the state, and every change until Ctrl-C.
pub(super) async fn run(
    cluster: &Cluster,
    subject: Option<&Subject>,
    view: &View,
) -> Result<(), StatusError> {
    let kinds = match subject {
        Some(subject) => slice::from_ref(&subject.kind),
        None => with_status(),
    };
    let mut changes = changes(cluster, kinds);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    let mut shown: Option<Vec<Row>> = None;
    loop {
        show(cluster, subject, view, &mut shown).await?;
        tokio::select! {
            change = changes.next() => if change.is_none() { return Ok(()) },
            _ = &mut interrupted => return Ok(()),
        }
        // Include changes that follow at once.
        while let Ok(Some(())) = tokio::time::timeout(TOGETHER, changes.next()).await {}
    }
}

/// Signals any change.
fn changes(cluster: &Cluster, kinds: &[Kind]) -> BoxStream<'static, ()> {
    let watches = kinds.iter().map(|kind| {
        let watch = watcher::watcher(cluster.api(&kind.resource), watcher::Config::default());
        // A kind that cannot be watched sends nothing; the output itself contains the reason.
        watch
            .default_backoff()
            .filter_map(async |event| event.ok().map(drop))
            .boxed()
    });
    stream::select_all(watches).boxed()
}

/// On a terminal, for a tree and for JSON prints everything again; otherwise only the rows that changed, like `kubectl
/// get -w`.
async fn show(
    cluster: &Cluster,
    subject: Option<&Subject>,
    view: &View,
    shown: &mut Option<Vec<Row>>,
) -> Result<(), StatusError> {
    let is_table = matches!(view.format, Format::Table | Format::Wide);
    let one = subject.is_some_and(|subject| subject.name.is_some());
    if is_terminal() && is_table {
        let text = answer(cluster, subject, view).await?;
        return Ok(output::print(&format!("{CLEAR}{text}"))?);
    }
    if one || !is_table {
        return Ok(output::print(&answer(cluster, subject, view).await?)?);
    }
    let now = overview(cluster, subject.map(|subject| &subject.kind), Timestamp::now()).await;
    let Some(before) = shown else {
        output::print(&render(&now, cluster.namespace.is_none(), view)?)?;
        *shown = Some(now.objects);
        return Ok(());
    };
    let changed: Vec<Row> = now
        .objects
        .iter()
        .filter(|row| !before.iter().any(|old| same(old, row)))
        .cloned()
        .collect();
    output::print(&table::changed(&changed, cluster.namespace.is_none(), view))?;
    *before = now.objects;
    Ok(())
}

/// Whether two rows are equal, except for times.
fn same(one: &Row, other: &Row) -> bool {
    let said = |row: &Row| {
        (
            (row.kind.clone(), row.namespace.clone(), row.name.clone()),
            (row.state, row.phase.clone(), row.since),
            (row.reason.clone(), row.waits_for.clone(), row.next.clone()),
        )
    };
    said(one) == said(other)
}
