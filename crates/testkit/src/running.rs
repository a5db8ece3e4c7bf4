//! An operator in the process of the test, and what its numbers say.

use std::fmt;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::wait;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// An operator that runs; dropped, it is killed where it stands.
pub struct Running {
    controller: &'static str,
    task: JoinHandle<()>,
    numbers: Box<dyn Fn() -> String + Send + Sync>,
}

impl Running {
    /// The operator in this task, whose controller of this name is watched by what `/metrics` would say.
    pub fn new(
        controller: &'static str,
        task: JoinHandle<()>,
        numbers: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Self {
            controller,
            task,
            numbers: Box::new(numbers),
        }
    }

    /// How many passes have ended.
    pub fn passes(&self) -> u64 {
        passes(&self.numbers(), self.controller)
    }

    /// Waits until no pass is running.
    pub async fn idle(&self) {
        let workers = of_controller("controller_runtime_active_workers", self.controller);
        wait::eventually(PATIENCE, "all passes to end", async || self.total(&workers) == 0).await;
    }

    /// The sum of all numbers whose name and labels begin like this.
    pub fn total(&self, start: &str) -> u64 {
        total(&self.numbers(), start)
    }

    /// All numbers, as `/metrics` would say them.
    pub fn numbers(&self) -> String {
        (self.numbers)()
    }

    /// Kills it, as SIGKILL would: nothing of it goes on.
    pub async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an operator with the controller {}", self.controller)
    }
}

/// How many passes of a controller have ended, by what `/metrics` would say.
pub fn passes(numbers: &str, controller: &str) -> u64 {
    total(
        numbers,
        &of_controller("controller_runtime_reconcile_total", controller),
    )
}

fn of_controller(name: &str, controller: &str) -> String {
    format!("{name}{{controller=\"{controller}\"")
}

fn total(numbers: &str, start: &str) -> u64 {
    let lines = numbers.lines().filter(|line| line.starts_with(start));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn numbers_are_those_of_the_controller() {
        let task = tokio::spawn(std::future::pending());
        let text = "controller_runtime_reconcile_total{controller=\"user\",result=\"success\"} 3\n\
                    controller_runtime_reconcile_total{controller=\"user\",result=\"error\"} 1\n\
                    controller_runtime_reconcile_total{controller=\"other\",result=\"error\"} 9\n\
                    controller_runtime_active_workers{controller=\"user\"} 0\n";
        let running = Running::new("user", task, || text.to_owned());
        assert_eq!(running.passes(), 4);
        assert_eq!(running.total("controller_runtime_reconcile_total"), 13);
        running.idle().await;
        running.kill().await;
    }
}
