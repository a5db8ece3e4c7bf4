//! A parser for the subset of `PromQL` that the alerts and the dashboard use. It rejects what Prometheus rejects:
//! unmatched brackets, unknown functions, a counter without a range, a range without a rate.

const AGGREGATIONS: [&str; 5] = ["avg", "count", "max", "min", "sum"];
/// Functions that take a range, and functions that take an instant.
const OF_A_RANGE: [&str; 4] = ["increase", "irate", "max_over_time", "rate"];
const OF_AN_INSTANT: [&str; 5] = ["absent", "clamp_min", "histogram_quantile", "time", "vector"];
const OPERATORS: [&str; 15] = [
    "==", "!=", ">=", "<=", ">", "<", "+", "-", "*", "/", "%", "^", "and", "or", "unless",
];

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number,
    Instant,
    Range,
}

/// Parses a whole expression. Grafana's variables are replaced by example values.
pub(super) fn read(expression: &str) -> Result<Value, String> {
    let text = expression.replace("$__rate_interval", "5m");
    let mut reader = Reader { rest: &text };
    let value = reader.expression()?;
    match reader.peek() {
        "" => Ok(value),
        rest => Err(format!("nothing more was expected: {rest}")),
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    fn takes(&mut self, token: &str) -> bool {
        let rest = self.peek();
        let found = rest.strip_prefix(token).filter(|after| {
            // A word ends where the next character does not continue it.
            let continues = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !token.ends_with(continues) || !after.starts_with(continues)
        });
        if let Some(after) = found {
            self.rest = after;
        }
        found.is_some()
    }

    fn need(&mut self, token: &str) -> Result<(), String> {
        if self.takes(token) {
            return Ok(());
        }
        Err(format!("{token} was expected before: {}", self.rest))
    }

    /// A name, or nothing.
    fn name(&mut self) -> &'a str {
        let rest = self.peek();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            return "";
        }
        self.rest = after;
        name
    }

    fn number(&mut self) -> bool {
        let rest = self.peek();
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'));
        let (digits, after) = rest.split_at(end.unwrap_or(rest.len()));
        let is = !digits.is_empty() && digits.parse::<f64>().is_ok();
        if is {
            self.rest = after;
        }
        is
    }

    fn expression(&mut self) -> Result<Value, String> {
        let mut value = self.operand()?;
        while OPERATORS.iter().any(|operator| self.takes(operator)) {
            self.takes("bool");
            if self.takes("on") || self.takes("ignoring") {
                self.labels()?;
                if self.takes("group_left") || self.takes("group_right") {
                    self.labels()?;
                }
            }
            let other = self.operand()?;
            if value == Value::Range || other == Value::Range {
                return Err("a range cannot be compared or added".to_owned());
            }
            if other == Value::Instant {
                value = Value::Instant;
            }
        }
        Ok(value)
    }

    fn operand(&mut self) -> Result<Value, String> {
        if self.number() {
            return Ok(Value::Number);
        }
        if self.takes("(") {
            let value = self.expression()?;
            self.need(")")?;
            return Ok(value);
        }
        let name = self.name();
        if AGGREGATIONS.contains(&name) {
            let before = self.grouping()?;
            self.need("(")?;
            let value = self.expression()?;
            self.need(")")?;
            if !before {
                self.grouping()?;
            }
            return match value {
                Value::Instant => Ok(Value::Instant),
                other => Err(format!("{name} takes an instant, not {other:?}")),
            };
        }
        if self.peek().starts_with('(') {
            return self.function(name);
        }
        self.selector(name)
    }

    /// `by (a, b)` or `without (a)`, where there is one.
    fn grouping(&mut self) -> Result<bool, String> {
        let is = self.takes("by") || self.takes("without");
        if is {
            self.labels()?;
        }
        Ok(is)
    }

    fn labels(&mut self) -> Result<(), String> {
        self.need("(")?;
        loop {
            if self.name().is_empty() {
                return Err(format!("a label was expected before: {}", self.rest));
            }
            if self.takes(")") {
                return Ok(());
            }
            self.need(",")?;
        }
    }

    fn function(&mut self, name: &str) -> Result<Value, String> {
        let of_a_range = OF_A_RANGE.contains(&name);
        if !of_a_range && !OF_AN_INSTANT.contains(&name) {
            return Err(format!("{name} is no function that is known here"));
        }
        self.need("(")?;
        let mut last = Value::Instant;
        while !self.takes(")") {
            last = self.expression()?;
            if !self.peek().starts_with(')') {
                self.need(",")?;
            }
        }
        if of_a_range != (last == Value::Range) {
            return Err(format!("{name} does not take {last:?}"));
        }
        Ok(Value::Instant)
    }

    fn selector(&mut self, name: &str) -> Result<Value, String> {
        if name.is_empty() {
            return Err(format!("a metric was expected before: {}", self.rest));
        }
        self.need("{")?;
        while !self.takes("}") {
            if self.name().is_empty() || !["=~", "!~", "!=", "="].iter().any(|token| self.takes(token)) {
                return Err(format!(
                    "a label and its value were expected before: {}",
                    self.rest
                ));
            }
            self.need("\"")?;
            let (_, after) = self.rest.split_once('"').ok_or("a value has no end")?;
            self.rest = after;
            if !self.peek().starts_with('}') {
                self.need(",")?;
            }
        }
        if !self.takes("[") {
            // A counter by itself says when the process was started.
            return if name.ends_with("_total") || name.ends_with("_bucket") {
                Err(format!("{name} needs a range and a rate"))
            } else {
                Ok(Value::Instant)
            };
        }
        if !self.number() || !["ms", "s", "m", "h", "d"].iter().any(|unit| self.takes(unit)) {
            return Err(format!("a duration was expected before: {}", self.rest));
        }
        self.need("]")?;
        Ok(Value::Range)
    }
}

#[test]
fn what_prometheus_refuses_is_refused() {
    for wrong in [
        "sum(up{})) > 1",
        "sum by controller (up{})",
        "rate(up{})",
        "sum(rate(x_total{}[5m])",
        "rate(x_total{a=b}[5m])",
        "x_total{} > 1",
        "average(up{})",
        "up{} >",
        "sum(x_total{}[5m])",
        "rate(x_total{}[5])",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    for right in [
        "absent(up{a=\"b\"} == 1)",
        "sum by (a, b) (rate(x_total{a=~\"b|c\"}[$__rate_interval])) / 2 > 0.5",
        "max(up{}) by (a) and on (a) (min(up{}) < 3)",
        "histogram_quantile(0.99, sum by (le) (rate(x_bucket{}[5m]))) > 1",
    ] {
        assert_eq!(read(right), Ok(Value::Instant), "{right}");
    }
}
