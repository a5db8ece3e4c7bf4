//! Parses the operator's metrics.

/// The sum of all samples of a metric whose labels contain each of these (`controller="user"`).
pub(super) fn sum(exposition: &str, name: &str, labels: &[&str]) -> f64 {
    exposition
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let (found, value) = match rest.strip_prefix('{') {
                Some(rest) => rest.rsplit_once('}')?,
                None if rest.starts_with(' ') => ("", rest),
                // A longer name.
                None => return None,
            };
            let all = labels.iter().all(|label| found.contains(label));
            all.then(|| value.split_whitespace().next()?.parse::<f64>().ok())?
        })
        .sum()
}

/// The values of a label of a metric.
pub(super) fn values<'a>(exposition: &'a str, name: &str, label: &str) -> Vec<&'a str> {
    let prefix = format!("{name}{{");
    let key = format!("{label}=\"");
    let mut values: Vec<&str> = exposition
        .lines()
        .filter(|line| line.starts_with(&prefix))
        .filter_map(|line| {
            let (_, rest) = line.split_once(&key)?;
            rest.split_once('"').map(|(value, _)| value)
        })
        .collect();
    values.sort_unstable();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE workqueue_depth gauge\n\
        workqueue_depth{name=\"user\",controller=\"user\"} 3\n\
        workqueue_depth{name=\"policy\",controller=\"policy\"} 4\n\
        workqueue_depth_other 9\n\
        plain 1.5\n";

    #[test]
    fn samples_are_added_up() {
        assert!((sum(TEXT, "workqueue_depth", &[]) - 7.0).abs() < 0.001);
        assert!((sum(TEXT, "workqueue_depth", &["controller=\"user\""]) - 3.0).abs() < 0.001);
        assert!((sum(TEXT, "plain", &[]) - 1.5).abs() < 0.001);
        assert!(sum(TEXT, "missing", &[]).abs() < 0.001);
        assert_eq!(values(TEXT, "workqueue_depth", "controller"), ["policy", "user"]);
    }
}
