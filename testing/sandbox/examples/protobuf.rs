//! Creates the table of protobuf field numbers from the `.proto` files of the Kubernetes API, for clients that send
//! protobuf. The `OpenAPI` schemas already describe the fields.
//!
//! ```text
//! cargo run -p stanchion-sandbox --example protobuf -- FOLDER > testing/sandbox/data/protobuf.json
//! zstd -19 --rm -f testing/sandbox/data/protobuf.json
//! ```
//!
//! FOLDER contains the `generated.proto` files of k8s.io/api and k8s.io/apimachinery, at any depth.
#![allow(clippy::print_stdout, reason = "the table goes to standard output")]

use std::{collections::BTreeMap, fs, path::Path};

use regex::Regex;

type Error = Box<dyn std::error::Error>;
type Messages = BTreeMap<String, BTreeMap<u32, String>>;

fn main() -> Result<(), Error> {
    let folder = std::env::args().nth(1).ok_or("usage: protobuf FOLDER")?;
    let mut messages = Messages::new();
    read(Path::new(&folder), &mut messages)?;
    println!("{}", serde_json::to_string(&messages)?);
    Ok(())
}

fn read(path: &Path, messages: &mut Messages) -> Result<(), Error> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            read(&entry?.path(), messages)?;
        }
        return Ok(());
    }
    let package = Regex::new(r"^package (\S+);")?;
    let message = Regex::new(r"^message (\w+) \{")?;
    let field = Regex::new(r"^\s+(?:optional|repeated|map<)\s?.*\s(\w+) = (\d+);")?;
    let (mut prefix, mut current) = (String::new(), String::new());
    for line in fs::read_to_string(path)?.lines() {
        if let Some((_, [name])) = package.captures(line).map(|found| found.extract()) {
            // The schemas write the domain in reverse.
            prefix = name.replacen("k8s.io", "io.k8s", 1);
        } else if let Some((_, [name])) = message.captures(line).map(|found| found.extract()) {
            current = format!("{prefix}.{name}");
        } else if let Some((_, [name, number])) = field.captures(line).map(|found| found.extract()) {
            messages
                .entry(current.clone())
                .or_default()
                .insert(number.parse()?, name.to_owned());
        }
    }
    Ok(())
}
