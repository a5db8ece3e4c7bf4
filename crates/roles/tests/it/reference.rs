//! The manifest reference matches the types, and the examples of the documentation are valid.

/// Run with `UPDATE_DOCS=1` to write the reference.
#[test]
fn the_manifest_reference_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/roles/manifest.md");
    let text = stanchion_roles::manifest::reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        text,
        "run this test with UPDATE_DOCS=1"
    );
}

/// Every example of the documentation is a valid manifest.
#[test]
fn the_examples_of_the_documentation_are_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/roles");
    let mut checked = 0;
    for page in std::fs::read_dir(folder).unwrap() {
        let path = page.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for block in text.split("```yaml\n").skip(1) {
            let example = block.split("```").next().unwrap();
            // Workflows of CI systems are YAML, too.
            if example.contains("jobs:") || example.contains("sources:") {
                continue;
            }
            let strict = stanchion_roles::manifest::Strictness::Strict;
            if let Err(error) = stanchion_roles::manifest::load(example, strict) {
                panic!("{}: {error}\n{example}", path.display());
            }
            checked += 1;
        }
    }
    assert!(checked >= 4, "{checked} examples");
}
