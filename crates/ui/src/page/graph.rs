//! The graph of roles, memberships and privileges as SVG. Without styles in attributes: the content security policy
//! allows none.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use stanchion_roles::graph::{Edge, EdgeKind, Graph, Node, NodeKind};

/// More nodes are no longer readable.
const LARGEST: usize = 300;

/// Sizes in SVG units.
const WIDTH: usize = 210;
const HEIGHT: usize = 40;
const ACROSS: usize = 330;
const DOWN: usize = 56;
const MARGIN: usize = 30;

/// The part of a graph that one role reaches, with the roles that reach it.
pub(super) fn around(graph: &Graph, role: &str) -> Graph {
    let Some(start) = graph
        .nodes
        .iter()
        .find(|node| is_role(node) && node.label == role)
    else {
        return graph.clone();
    };
    let mut kept = BTreeSet::from([start.id.as_str()]);
    for towards in [true, false] {
        let mut open = vec![start.id.as_str()];
        while let Some(id) = open.pop() {
            for edge in &graph.edges {
                let (from, to) = if towards {
                    (&edge.source, &edge.target)
                } else {
                    (&edge.target, &edge.source)
                };
                if from == id && kept.insert(to) {
                    open.push(to);
                }
            }
        }
    }
    let kept: BTreeSet<String> = kept.into_iter().map(str::to_owned).collect();
    let mut part = graph.clone();
    part.nodes.retain(|node| kept.contains(&node.id));
    part.edges
        .retain(|edge| kept.contains(&edge.source) && kept.contains(&edge.target));
    part
}

/// The graph, or why it is not drawn.
pub(super) fn draw(graph: &Graph, address: &dyn Fn(&str) -> String) -> Markup {
    if graph.nodes.len() > LARGEST {
        return html! {
            div.notice {
                "The graph has " (graph.nodes.len()) " nodes, too many to read. Look for a table below, and choose a role in the answer to \
                 see its part."
            }
        };
    }
    let places = places(graph);
    let columns = places.values().map(|(column, _)| column + 1).max().unwrap_or(1);
    let rows = places.values().map(|(_, row)| row + 1).max().unwrap_or(1);
    let width = 2 * MARGIN + (columns - 1) * ACROSS + WIDTH;
    let height = 2 * MARGIN + (rows - 1) * DOWN + HEIGHT;
    let view = format!("0 0 {width} {height}");
    let label = format!(
        "Graph of {} roles and objects with {} connections",
        graph.nodes.len(),
        graph.edges.len()
    );
    html! {
        figure.graph data-key="graph" {
            svg viewBox=(view) data-graph=(view) role="group" aria-label=(label) preserveAspectRatio="xMidYMid meet" {
                @for edge in &graph.edges { (line(edge, &places)) }
                @for node in &graph.nodes {
                    @if let Some(place) = places.get(node.id.as_str()) { (shape(node, *place, address)) }
                }
            }
            div.tools {
                button type="button" data-zoom="in" aria-label="Zoom in" { "+" }
                button type="button" data-zoom="out" aria-label="Zoom out" { "−" }
                button type="button" data-zoom="all" { "Fit" }
            }
        }
    }
}

fn is_role(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Role | NodeKind::ExternalPrincipal)
}

/// Column and row of each node: members to the left of their roles, objects in the last column.
fn places(graph: &Graph) -> BTreeMap<&str, (usize, usize)> {
    let mut column: BTreeMap<&str, usize> = graph
        .nodes
        .iter()
        .filter(|node| is_role(node))
        .map(|node| (node.id.as_str(), 0))
        .collect();
    // The longest chain decides. A circle ends after as many rounds as there are roles.
    for _ in 0..column.len() {
        let mut moved = false;
        for edge in graph
            .edges
            .iter()
            .filter(|edge| edge.kind == EdgeKind::Membership)
        {
            let from = column.get(edge.source.as_str()).copied().unwrap_or(0);
            let limit = column.len();
            if let Some(to) = column.get_mut(edge.target.as_str())
                && *to <= from
                && from + 1 < limit
            {
                *to = from + 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let last = column.values().max().copied().unwrap_or(0) + 1;
    let mut rows: BTreeMap<usize, usize> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for node in &graph.nodes {
        let at = column.get(node.id.as_str()).copied().unwrap_or(last);
        let row = rows.entry(at).or_default();
        places.insert(node.id.as_str(), (at, *row));
        *row += 1;
    }
    places
}

fn corner((column, row): (usize, usize)) -> (usize, usize) {
    (MARGIN + column * ACROSS, MARGIN + row * DOWN)
}

fn line(edge: &Edge, places: &BTreeMap<&str, (usize, usize)>) -> Markup {
    let (Some(from), Some(to)) = (places.get(edge.source.as_str()), places.get(edge.target.as_str())) else {
        return html! {};
    };
    let ((x1, y1), (x2, y2)) = (corner(*from), corner(*to));
    let (x1, y1, y2) = (x1 + WIDTH, y1 + HEIGHT / 2, y2 + HEIGHT / 2);
    let bend = ACROSS / 3;
    let curve = format!(
        "M{x1} {y1}C{} {y1} {} {y2} {x2} {y2}",
        x1 + bend,
        x2.saturating_sub(bend)
    );
    let class = match edge.kind {
        EdgeKind::Membership => "edge member",
        EdgeKind::DefaultPrivilege => "edge grant future",
        EdgeKind::Grant => "edge grant",
    };
    html! { path class=(class) d=(curve) { title { (edge.label) } } }
}

fn shape(node: &Node, place: (usize, usize), address: &dyn Fn(&str) -> String) -> Markup {
    let (x, y) = corner(place);
    let class = match node.kind {
        NodeKind::Role if node.login == Some(true) => "node role login",
        NodeKind::Role => "node role",
        NodeKind::ExternalPrincipal => "node external",
        NodeKind::GrantTarget => "node",
        NodeKind::DefaultPrivilegeTarget => "node future",
    };
    let sub = match node.kind {
        NodeKind::Role if node.login == Some(true) => "role, can log in",
        NodeKind::Role => "role",
        NodeKind::ExternalPrincipal => "role, managed elsewhere",
        NodeKind::GrantTarget => "object",
        NodeKind::DefaultPrivilegeTarget => "future objects",
    };
    let inner = html! {
        rect x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="9" {}
        text x=(x + 12) y=(y + 18) { (short(&node.label)) }
        text.sub x=(x + 12) y=(y + 33) { (sub) }
    };
    html! {
        g class=(class) {
            title { (node.label) }
            @if is_role(node) {
                a href=(address(&node.label)) { (inner) }
            } @else { (inner) }
        }
    }
}

/// A label that fits into its node.
fn short(label: &str) -> String {
    const FITS: usize = 27;
    if label.chars().count() <= FITS {
        return label.to_owned();
    }
    let start: String = label.chars().take(FITS - 1).collect();
    format!("{start}…")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]
mod tests {
    use serde_json::json;
    use stanchion_roles::graph;

    use super::*;
    use crate::access::tests::{desired, stock};

    #[test]
    fn members_are_left_of_their_roles_and_objects_right_of_all() {
        let graph = graph::desired(&stock());
        let places = places(&graph);
        assert!(places["role:alice"].0 < places["role:reader"].0);
        let last = places.values().map(|place| place.0).max().unwrap();
        for node in graph.nodes.iter().filter(|node| !is_role(node)) {
            assert_eq!(places[node.id.as_str()].0, last);
        }
        let distinct: BTreeSet<_> = places.values().collect();
        assert_eq!(distinct.len(), places.len(), "no two nodes are in one place");
    }

    #[test]
    fn a_circle_is_drawn() {
        let circle = desired(&json!({
            "roles": [{ "name": "a" }, { "name": "b" }],
            "memberships": [
                { "role": "a", "members": [{ "name": "b" }] },
                { "role": "b", "members": [{ "name": "a" }] },
            ],
        }));
        let drawn = draw(&graph::desired(&circle), &|_| "/".to_owned()).into_string();
        assert_eq!(drawn.matches("class=\"edge member\"").count(), 2, "{drawn}");
    }

    #[test]
    fn a_role_has_a_part_of_the_graph() {
        let whole = graph::desired(&stock());
        let part = around(&whole, "carol");
        let labels: Vec<&str> = part.nodes.iter().map(|node| node.label.as_str()).collect();
        assert!(
            labels.contains(&"auditor") && !labels.contains(&"reader"),
            "{labels:?}"
        );
        assert_eq!(around(&whole, "nobody").nodes.len(), whole.nodes.len());
    }

    #[test]
    fn a_graph_that_nobody_can_read_is_not_drawn() {
        let roles: Vec<_> = (0..400).map(|n| json!({ "name": format!("r{n}") })).collect();
        let graph = graph::desired(&desired(&json!({ "roles": roles })));
        let drawn = draw(&graph, &|_| "/".to_owned()).into_string();
        assert!(drawn.contains("400 nodes") && !drawn.contains("<svg"), "{drawn}");
    }
}
