//! Runs the command with the streams and the environment of the process, on a single-threaded runtime.

use std::ffi::OsString;
use std::process::ExitCode;

use super::{Args, Cluster, Console, FAILED, Name, run, run_as_pgroles};

/// Entry point of `stanchion roles …`.
pub fn main(args: Args, name: Name, cluster: &impl Cluster) -> ExitCode {
    with_console(async |console| run(args, name, console, cluster).await)
}

/// Entry point when the binary is called as `pgroles`.
pub fn main_as_pgroles(arguments: impl IntoIterator<Item = OsString>, cluster: &impl Cluster) -> ExitCode {
    with_console(async |console| run_as_pgroles(arguments, console, cluster).await)
}

fn with_console(work: impl AsyncFnOnce(&mut Console<'_>) -> u8) -> ExitCode {
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let env = |name: &str| std::env::var(name).ok();
    let mut console = Console::new(&mut out, &mut err, &env).of_the_process();
    // One connection needs one thread; more would only cost memory.
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => ExitCode::from(runtime.block_on(work(&mut console))),
        Err(error) => {
            console.error(&format!("Error: no runtime: {error}"));
            ExitCode::from(FAILED)
        }
    }
}
