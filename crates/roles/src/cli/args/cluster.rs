//! `reconcile`, which needs a cluster. The role engine has no cluster client; the binary provides one.

use std::str::FromStr;
use std::time::Duration;

/// `reconcile`
#[derive(Debug, Clone, clap::Args)]
pub struct ReconcileArgs {
    /// The PostgresPolicy, either NAME or postgrespolicy/NAME
    pub resource: Policy,
    /// Kubernetes namespace containing the PostgresPolicy
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
    /// Wait until the operator has run this request, and fail with the reason if it did not succeed
    #[arg(long)]
    pub wait: bool,
    /// Maximum time to wait, e.g. "30s", "2m", or "1m30s"
    #[arg(long, default_value = "2m", value_parser = duration)]
    pub timeout: Duration,
}

/// The name of a PostgresPolicy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy(pub String);

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const KINDS: [&str; 4] = [
            "postgrespolicy",
            "postgrespolicies",
            "postgrespolicies.pgroles.io",
            "pgr",
        ];
        let (kind, name) = text.split_once('/').unwrap_or((KINDS[0], text));
        if !KINDS.contains(&kind.to_ascii_lowercase().as_str()) {
            return Err(format!(
                "unsupported reconcile resource kind `{kind}`: only a PostgresPolicy can be asked for"
            ));
        }
        if name.is_empty() {
            return Err("the name of the PostgresPolicy is missing".to_owned());
        }
        Ok(Self(name.to_owned()))
    }
}

/// `90`, `90s`, `2m`, `1m30s`, `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration such as 30s, 2m or 1m30s");
    let mut seconds = 0u64;
    let mut number = String::new();
    for c in text.chars() {
        let unit = match c {
            '0'..='9' => {
                number.push(c);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            _ => return Err(wrong()),
        };
        let count: u64 = number.parse().map_err(|_| wrong())?;
        number.clear();
        seconds = count
            .checked_mul(unit)
            .and_then(|more| seconds.checked_add(more))
            .ok_or_else(wrong)?;
    }
    match number.parse::<u64>() {
        Ok(rest) if seconds == 0 => Ok(Duration::from_secs(rest)),
        Err(_) if number.is_empty() && seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_by_name_and_by_kind() {
        for text in ["db", "postgrespolicy/db", "PostgresPolicy/db", "pgr/db"] {
            assert_eq!(text.parse(), Ok(Policy("db".to_owned())), "{text}");
        }
        assert!("secret/db".parse::<Policy>().unwrap_err().contains("secret"));
        assert!("postgrespolicy/".parse::<Policy>().is_err());
    }

    #[test]
    fn durations() {
        for (text, seconds) in [("90", 90), ("30s", 30), ("2m", 120), ("1m30s", 90), ("1h", 3_600)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "m", "1d", "1m30", "-1s", "99999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
