//! Serves a sandbox until it is interrupted, to try things with kubectl:
//!
//! ```text
//! cargo run -p stanchion-sandbox --example serve -- /tmp/sandbox.kubeconfig
//! ```
#![allow(clippy::print_stdout, reason = "prints how to connect")]

use stanchion_sandbox::Sandbox;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: serve KUBECONFIG")?;
    let mut sandbox = Sandbox::builder().start()?;
    sandbox.listen(0).await?;
    sandbox.write_kubeconfig(path.as_ref())?;
    println!("export KUBECONFIG={path}");
    tokio::signal::ctrl_c().await?;
    Ok(())
}
