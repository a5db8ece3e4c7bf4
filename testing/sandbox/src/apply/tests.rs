use super::*;

fn writer(manager: &str) -> Writer<'_> {
    Writer {
        schema: Schema::of_kind("", "v1", "ConfigMap"),
        manager,
        api_version: "v1",
        subresource: "",
        ignored: &[],
        now: "2026-01-01T00:00:00Z",
    }
}

fn config(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data})
}

#[test]
fn a_field_that_is_no_longer_applied_goes() {
    let one = writer("a")
        .apply(None, &config(&json!({"x": "1", "y": "1"})), false)
        .unwrap();
    let two = writer("a")
        .apply(Some(&one), &config(&json!({"x": "2"})), false)
        .unwrap();
    assert_eq!(two["data"], json!({"x": "2"}));
}

#[test]
fn a_field_of_another_manager_is_a_conflict_unless_forced() {
    let one = writer("a")
        .apply(None, &config(&json!({"x": "1", "y": "1"})), false)
        .unwrap();
    let conflicts = writer("b")
        .apply(Some(&one), &config(&json!({"x": "2"})), false)
        .unwrap_err();
    assert_eq!(
        conflict_message(&conflicts),
        "Apply failed with 1 conflict: conflict with \"a\": .data.x"
    );
    let same = writer("b")
        .apply(Some(&one), &config(&json!({"x": "1"})), false)
        .unwrap();
    assert_eq!(same["metadata"]["managedFields"].as_array().unwrap().len(), 2);
    let forced = writer("b")
        .apply(Some(&one), &config(&json!({"x": "2"})), true)
        .unwrap();
    assert_eq!(forced["data"], json!({"x": "2", "y": "1"}));
    assert_eq!(
        forced["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:data": {"f:y": {}}})
    );
}

#[test]
fn a_shared_field_stays_until_its_last_owner_drops_it() {
    let one = writer("a")
        .apply(None, &config(&json!({"x": "1"})), false)
        .unwrap();
    let two = writer("b")
        .apply(Some(&one), &config(&json!({"x": "1"})), false)
        .unwrap();
    let three = writer("a")
        .apply(Some(&two), &config(&json!({"z": "1"})), false)
        .unwrap();
    assert_eq!(three["data"], json!({"x": "1", "z": "1"}));
    let four = writer("b")
        .apply(Some(&three), &config(&json!({})), false)
        .unwrap();
    assert_eq!(four["data"], json!({"z": "1"}));
}

#[test]
fn an_update_takes_the_fields_that_it_changes() {
    let one = writer("a")
        .apply(None, &config(&json!({"x": "1", "y": "1"})), false)
        .unwrap();
    let mut two = one.clone();
    two["data"]["x"] = json!("2");
    writer("edit").update(&one, &mut two);
    let entries = two["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries[0]["fieldsV1"], json!({"f:data": {"f:y": {}}}));
    assert_eq!(entries[1]["fieldsV1"], json!({"f:data": {"f:x": {}}}));
    assert!(same_but_times(&one, &one));
}

#[test]
fn only_times_of_managers_may_differ() {
    let object = |time: &str, manager: &str, image: &str| json!({"metadata": {"name": "a", "managedFields": [{"manager": manager, "time": time}]}, "spec": {"image": image}});
    let same = |other: &Value| same_but_times(&object("1", "a", "x"), other);
    assert!(same(&object("2", "a", "x")));
    assert!(!same(&object("1", "b", "x")));
    assert!(!same(&object("1", "a", "y")));
    let mut more = object("1", "a", "x");
    more["status"] = json!({});
    assert!(!same(&more) && !same_but_times(&more, &object("1", "a", "x")));
    let mut bare = object("1", "a", "x");
    bare["metadata"] = json!({"name": "a"});
    assert!(!same(&bare) && !same_but_times(&bare, &object("1", "a", "x")));
}
