//! `test-bed` lets all test binaries of a run share one cluster.

use std::{
    path::Path,
    process::{Command, Output},
};

use stanchion_testkit::cluster::KUBECONFIG_VARIABLE;

fn test_bed(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_test-bed"))
        .args(arguments)
        .env_remove(KUBECONFIG_VARIABLE)
        .output()
        .unwrap()
}

#[test]
fn the_command_finds_the_cluster_and_its_status_comes_back() {
    let script =
        format!("echo \"${KUBECONFIG_VARIABLE}\"; grep -q 127.0.0.1 \"${KUBECONFIG_VARIABLE}\" && exit 7");
    let output = test_bed(&["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let kubeconfig = String::from_utf8(output.stdout).unwrap();
    let directory = Path::new(kubeconfig.trim()).parent().unwrap();
    assert!(!directory.exists(), "{} is left behind", directory.display());
}

#[test]
fn without_a_command_it_says_how_it_is_used() {
    let output = test_bed(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage: test-bed"));
}
