//! The sandbox is a library of its own: it knows no product that is tested with it.

use std::path::Path;

/// Kinds, groups and names of the operator in whose repository it lives.
const PRODUCT: [&str; 8] = [
    "stanchion.dev",
    "postgresuser",
    "postgrespolicy",
    "pgroles",
    "supabase",
    "gitlab",
    "stanchion-api",
    "stanchion-kernel",
];

fn search(path: &Path, found: &mut Vec<String>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            search(&entry.unwrap().path(), found);
        }
        return;
    }
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).to_lowercase();
    let known = PRODUCT.iter().filter(|word| text.contains(**word));
    found.extend(known.map(|word| format!("{}: {word}", path.display())));
}

#[test]
fn the_library_names_no_kind_of_the_operator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for part in ["src", "examples", "README.md", "Cargo.toml"] {
        search(&root.join(part), &mut found);
    }
    assert_eq!(found, [""; 0]);
}
