//! A few random changes of each kind: `make fuzz` makes many.

use stanchion_simulate::fuzz::{Changeable, fuzz};
use stanchion_simulate::scenarios::{Gitlab, Instance, Policy, Supabase, User};

fn leads_back<S: Changeable>() {
    let mut found = Vec::new();
    let report = fuzz::<S>(1, 5, |finding| found.push(finding.to_string()));
    assert_eq!(report.changes, 5);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn changes_of_a_gitlab_lead_back() {
    leads_back::<Gitlab>();
}

#[test]
fn changes_of_an_instance_lead_back() {
    leads_back::<Instance>();
}

#[test]
fn changes_of_a_policy_lead_back() {
    leads_back::<Policy>();
}

#[test]
fn changes_of_a_project_lead_back() {
    leads_back::<Supabase>();
}

#[test]
fn changes_of_a_user_lead_back() {
    leads_back::<User>();
}
