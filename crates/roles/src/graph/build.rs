//! Builds a graph from a state.

use std::collections::BTreeMap;

use super::{Edge, EdgeKind, Graph, Meta, Node, NodeKind, Source};
use crate::expand::{Desired, expand};
use crate::facts::Facts;
use crate::generate::generate;
use crate::model::PUBLIC;

/// The graph of the desired state.
pub fn desired(state: &Desired) -> Graph {
    build(state, Source::Desired)
}

/// The graph of the current state, built from its generated manifest.
pub fn current(facts: &Facts) -> Graph {
    build(&expand(&generate(facts)), Source::Current)
}

fn build(state: &Desired, source: Source) -> Graph {
    let mut builder = Builder {
        nodes: BTreeMap::new(),
        edges: vec![],
    };
    for (name, role) in &state.roles {
        let kind = if role.external {
            NodeKind::ExternalPrincipal
        } else {
            NodeKind::Role
        };
        let node = Node {
            managed: Some(!role.external),
            login: Some(role.state.login),
            comment: role.state.comment.clone(),
            ..node(role_id(name), name.clone(), kind)
        };
        builder.nodes.insert(node.id.clone(), node);
    }
    for (key, rule) in state.grants.iter().filter(|(_, rule)| !rule.present.is_empty()) {
        let place: Vec<_> = [&key.schema, &key.name]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let columns: Vec<_> = key.columns.iter().map(String::as_str).collect();
        let columns = if columns.is_empty() {
            String::new()
        } else {
            format!(" ({})", columns.join(", "))
        };
        let label = format!("{} {}{columns}", key.kind, place.join("."));
        let grantee = builder.role(&key.grantee);
        builder.edge(
            grantee,
            &label,
            "grant",
            NodeKind::GrantTarget,
            EdgeKind::Grant,
            rule.present.to_string(),
        );
    }
    for (key, rule) in state
        .default_privileges
        .iter()
        .filter(|(_, rule)| !rule.present.is_empty())
    {
        let place = key.schema.as_deref().unwrap_or("*");
        let label = format!("new {}s of {} in {place}", key.kind, key.owner);
        let grantee = builder.role(&key.grantee);
        let kind = NodeKind::DefaultPrivilegeTarget;
        builder.edge(
            grantee,
            &label,
            "default",
            kind,
            EdgeKind::DefaultPrivilege,
            rule.present.to_string(),
        );
    }
    let mut membership_count = 0;
    for (role, membership) in &state.memberships {
        for (member, options) in &membership.members {
            membership_count += 1;
            let (source, target) = (builder.role(member), builder.role(role));
            let admin = if options.admin { ", admin" } else { "" };
            let inherit = if options.inherit { "inherits" } else { "member" };
            let label = format!("{inherit}{admin}");
            builder.edges.push(Edge {
                source,
                target,
                kind: EdgeKind::Membership,
                label,
            });
        }
    }
    let count = |kind| builder.edges.iter().filter(|edge| edge.kind == kind).count();
    Graph {
        schema_version: "pgroles.visual_graph.v1",
        meta: Meta {
            source,
            role_count: state.roles.len(),
            grant_count: count(EdgeKind::Grant),
            default_privilege_count: count(EdgeKind::DefaultPrivilege),
            membership_count,
            collapsed: false,
            managed_scope: None,
        },
        nodes: builder.nodes.into_values().collect(),
        edges: builder.edges,
    }
}

struct Builder {
    nodes: BTreeMap<String, Node>,
    edges: Vec<Edge>,
}

impl Builder {
    /// The id of a role, which need not be declared.
    fn role(&mut self, name: &str) -> String {
        let id = role_id(name);
        self.nodes.entry(id.clone()).or_insert_with(|| Node {
            managed: Some(false),
            ..node(id.clone(), name.to_owned(), NodeKind::ExternalPrincipal)
        });
        id
    }

    fn edge(
        &mut self,
        source: String,
        label: &str,
        prefix: &str,
        node: NodeKind,
        kind: EdgeKind,
        privileges: String,
    ) {
        let target = format!("{prefix}:{label}");
        self.nodes
            .entry(target.clone())
            .or_insert_with(|| self::node(target.clone(), label.to_owned(), node));
        self.edges.push(Edge {
            source,
            target,
            kind,
            label: privileges,
        });
    }
}

fn node(id: String, label: String, kind: NodeKind) -> Node {
    Node {
        id,
        label,
        kind,
        managed: None,
        login: None,
        privileges: vec![],
        comment: None,
    }
}

fn role_id(name: &str) -> String {
    if name == PUBLIC {
        "public".to_owned()
    } else {
        format!("role:{name}")
    }
}
