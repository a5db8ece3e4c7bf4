//! An operator in the process of the test, and its metrics.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::wait;

/// Enough for a busy machine.
const OPERATOR_TIMEOUT: Duration = Duration::from_mins(2);

/// Returns the text of `/metrics`.
type Numbers = Box<dyn Fn() -> String + Send + Sync>;

/// A running operator. Dropping the value kills it at once.
pub struct Running {
    controller: &'static str,
    task: JoinHandle<()>,
    numbers: Numbers,
}

impl Running {
    /// The operator in this task. Its metrics describe the controller of this name.
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

    /// Number of passes that have ended.
    pub fn passes(&self) -> u64 {
        passes(&self.numbers(), self.controller)
    }

    /// Waits until no pass is running.
    pub async fn idle(&self) {
        wait::eventually(OPERATOR_TIMEOUT, "all passes to end", async || {
            running_passes(&self.numbers(), self.controller) == 0
        })
        .await;
    }

    /// The sum of all metrics whose name and labels start with this text.
    pub fn total(&self, start: &str) -> u64 {
        total(&self.numbers(), start)
    }

    /// All metrics, as in `/metrics`.
    pub fn numbers(&self) -> String {
        (self.numbers)()
    }

    /// Kills the operator, as SIGKILL would: none of its tasks continues.
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

/// The current operator, if one replaces another.
pub struct Latest {
    controller: &'static str,
    numbers: Mutex<Option<Numbers>>,
}

impl Latest {
    /// No operator yet; its controller will have this name.
    pub fn new(controller: &'static str) -> Self {
        Self {
            controller,
            numbers: Mutex::default(),
        }
    }

    /// Another operator runs, until the returned value is dropped.
    #[must_use]
    pub fn runs(&self, numbers: impl Fn() -> String + Send + Sync + 'static) -> impl Drop {
        *self.numbers.lock().unwrap() = Some(Box::new(numbers));
        Now(self)
    }

    /// Whether it has finished a pass, and no pass runs or waits.
    pub fn has_looked(&self) -> bool {
        let numbers = self.numbers.lock().unwrap().as_ref().map(|numbers| numbers());
        numbers.is_some_and(|numbers| {
            let waiting = format!("workqueue_depth{{name=\"{}\"", self.controller);
            passes(&numbers, self.controller) > 0
                && running_passes(&numbers, self.controller) + total(&numbers, &waiting) == 0
        })
    }
}

/// Resets the operator on drop.
struct Now<'a>(&'a Latest);

impl Drop for Now<'_> {
    fn drop(&mut self) {
        *self.0.numbers.lock().unwrap() = None;
    }
}

impl fmt::Debug for Latest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the latest operator with the controller {}", self.controller)
    }
}

fn running_passes(numbers: &str, controller: &str) -> u64 {
    total(
        numbers,
        &of_controller("controller_runtime_active_workers", controller),
    )
}

/// Number of passes of a controller that have ended.
fn passes(numbers: &str, controller: &str) -> u64 {
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

    #[test]
    fn an_operator_has_looked_when_nothing_is_left_to_look_at() {
        let say = |passes: u64, running: u64, waiting: u64| {
            format!(
                "controller_runtime_reconcile_total{{controller=\"user\",result=\"success\"}} {passes}\n\
                 controller_runtime_active_workers{{controller=\"user\"}} {running}\n\
                 workqueue_depth{{name=\"user\",controller=\"user\"}} {waiting}\n"
            )
        };
        let latest = Latest::new("user");
        for (numbers, looked) in [
            ([0, 0, 0], false),
            ([1, 1, 0], false),
            ([1, 0, 1], false),
            ([1, 0, 0], true),
        ] {
            let [passes, running, waiting] = numbers;
            let _now = latest.runs(move || say(passes, running, waiting));
            assert_eq!(latest.has_looked(), looked, "{numbers:?}");
        }
        assert!(!latest.has_looked(), "it has ended");
    }
}
