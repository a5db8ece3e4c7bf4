//! Aggregated cluster roles: they get the rules of all roles that their selectors match.

use serde_json::{Value, json};

use super::actor::{Actor, note};
use crate::handlers::Endpoint;
use crate::selector::Selector;
use crate::store::Feed;

const STORAGE: &str = "rbac.authorization.k8s.io/clusterroles";

pub(crate) async fn run(actor: Actor) {
    let mut feed = Feed::new(actor.store());
    loop {
        let changes = feed.next().await;
        if !changes.iter().any(|(storage, _)| &**storage == STORAGE) {
            continue;
        }
        let roles = actor.store().list(STORAGE, None).objects;
        let roles: Vec<&Value> = roles.iter().map(|(_, role)| role.value()).collect();
        for whole in &roles {
            if let Some(rules) = aggregated(whole, &roles) {
                let name = whole["metadata"]["name"].as_str().unwrap_or_default();
                let change = |role: &mut Value| role["rules"] = rules.clone();
                let written = actor.modify(STORAGE, "", name, Endpoint::Main, change);
                note("role aggregation", Box::pin(written).await);
            }
        }
    }
}

/// The rules of the matching roles, by their names, each once; `None` for a role without aggregation.
fn aggregated(whole: &Value, roles: &[&Value]) -> Option<Value> {
    let selectors = whole.pointer("/aggregationRule/clusterRoleSelectors")?;
    let selectors: Vec<Selector> = selectors.as_array()?.iter().map(Selector::of_labels).collect();
    let mut parts: Vec<&&Value> = roles
        .iter()
        .filter(|role| role["metadata"]["name"] != whole["metadata"]["name"])
        .filter(|role| selectors.iter().any(|selector| selector.matches(role)))
        .collect();
    parts.sort_by_key(|role| role["metadata"]["name"].to_string());
    let mut gathered: Vec<Value> = Vec::new();
    for rule in parts.iter().filter_map(|role| role["rules"].as_array()).flatten() {
        if !gathered.contains(rule) {
            gathered.push(rule.clone());
        }
    }
    Some(if gathered.is_empty() {
        Value::Null
    } else {
        json!(gathered)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_the_sum_of_its_parts_by_name() {
        let role = |name: &str, rules: Value| json!({"metadata": {"name": name, "labels": {"part": "1"}}, "rules": rules});
        let (one, two) = (json!({"verbs": ["get"]}), json!({"verbs": ["list"]}));
        let (b, a) = (role("b", json!([one, two])), role("a", json!([two])));
        let selectors = json!({"clusterRoleSelectors": [{"matchLabels": {"part": "1"}}]});
        let whole = json!({"metadata": {"name": "whole"}, "aggregationRule": selectors});
        let roles = [&b, &whole, &a];
        assert_eq!(aggregated(&whole, &roles), Some(json!([two, one])));
        assert_eq!(aggregated(&a, &roles), None);
        assert_eq!(aggregated(&whole, &[&whole]), Some(Value::Null));
    }
}
