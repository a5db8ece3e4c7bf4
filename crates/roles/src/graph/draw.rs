//! Renders a graph as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Edge, EdgeKind, Graph, Node, NodeKind};

/// As JSON.
pub fn json(graph: &Graph) -> String {
    // Serialization cannot fail: the graph consists of strings, numbers and bools.
    serde_json::to_string_pretty(graph).unwrap_or_default() + "\n"
}

/// As an indented list: each role with its privileges and memberships.
pub fn tree(graph: &Graph) -> String {
    let labels: BTreeMap<&str, &str> = graph
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node.label.as_str()))
        .collect();
    let mut edges: BTreeMap<&str, Vec<&Edge>> = BTreeMap::new();
    for edge in &graph.edges {
        edges.entry(&edge.source).or_default().push(edge);
    }
    let mut text = String::new();
    let roles = graph
        .nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Role | NodeKind::ExternalPrincipal));
    for role in roles {
        let _ = writeln!(text, "{}{}", role.label, traits(role));
        let of_role = edges.get(role.id.as_str()).map(Vec::as_slice).unwrap_or_default();
        for (place, edge) in of_role.iter().enumerate() {
            let branch = if place + 1 == of_role.len() {
                "└──"
            } else {
                "├──"
            };
            let target = labels.get(edge.target.as_str()).copied().unwrap_or(&edge.target);
            let _ = match edge.kind {
                EdgeKind::Membership => writeln!(text, "{branch} member of {target} ({})", edge.label),
                EdgeKind::Grant | EdgeKind::DefaultPrivilege => {
                    writeln!(text, "{branch} {} on {target}", edge.label)
                }
            };
        }
    }
    text
}

fn traits(role: &Node) -> String {
    let mut traits = vec![];
    if role.login == Some(true) {
        traits.push("login");
    }
    if role.kind == NodeKind::ExternalPrincipal {
        traits.push("external");
    }
    if traits.is_empty() {
        String::new()
    } else {
        format!(" [{}]", traits.join(", "))
    }
}

/// For Graphviz.
pub fn dot(graph: &Graph) -> String {
    let mut text = String::from("digraph roles {\n  rankdir=LR;\n  node [fontname=\"Helvetica\"];\n");
    for node in &graph.nodes {
        let shape = match node.kind {
            NodeKind::Role => "box",
            NodeKind::ExternalPrincipal => "ellipse",
            NodeKind::GrantTarget => "cylinder",
            NodeKind::DefaultPrivilegeTarget => "note",
        };
        let _ = writeln!(
            text,
            "  {} [label={}, shape={shape}];",
            quoted(&node.id),
            quoted(&node.label)
        );
    }
    for edge in &graph.edges {
        let style = if edge.kind == EdgeKind::DefaultPrivilege {
            ", style=dashed"
        } else {
            ""
        };
        let (source, target) = (quoted(&edge.source), quoted(&edge.target));
        let _ = writeln!(
            text,
            "  {source} -> {target} [label={}{style}];",
            quoted(&edge.label)
        );
    }
    text.push_str("}\n");
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// For Mermaid.
pub fn mermaid(graph: &Graph) -> String {
    let ids: BTreeMap<&str, usize> = graph
        .nodes
        .iter()
        .enumerate()
        .map(|(n, node)| (node.id.as_str(), n))
        .collect();
    let mut text = String::from("graph LR\n");
    for (number, node) in graph.nodes.iter().enumerate() {
        let (open, close) = match node.kind {
            NodeKind::Role => ("[", "]"),
            NodeKind::ExternalPrincipal => ("([", "])"),
            NodeKind::GrantTarget => ("[(", ")]"),
            NodeKind::DefaultPrivilegeTarget => ("[/", "/]"),
        };
        let _ = writeln!(text, "  n{number}{open}\"{}\"{close}", escaped(&node.label));
    }
    for edge in &graph.edges {
        let number = |id: &str| ids.get(id).copied().unwrap_or_default();
        let arrow = if edge.kind == EdgeKind::DefaultPrivilege {
            "-.->"
        } else {
            "-->"
        };
        let (source, target) = (number(&edge.source), number(&edge.target));
        let _ = writeln!(
            text,
            "  n{source} {arrow}|\"{}\"| n{target}",
            escaped(&edge.label)
        );
    }
    text
}

/// Escapes the characters that Mermaid interprets.
fn escaped(text: &str) -> String {
    text.replace('#', "#35;")
        .replace('"', "#quot;")
        .replace('<', "#lt;")
        .replace('>', "#gt;")
}
