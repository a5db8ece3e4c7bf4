//! The logs of pods.

use serde_json::Value;

use crate::answer::{self, Answer};
use crate::error::ApiError;
use crate::request::Call;
use crate::server::Server;
use crate::store::{Object, text};

const NOTHING: &str = "The sandbox simulates workloads: no container ran, so there is no log.\n";

pub(crate) fn logs(server: &Server, call: &Call) -> Result<Answer, ApiError> {
    let pod = super::find(server, call)?;
    let container = container(&pod, call.query.text("container"))?;
    let said = server.logs.of(pod.uid(), container);
    let said = said.as_deref().unwrap_or(NOTHING);
    let said = match call.query.text("tailLines") {
        "" => said,
        lines => last(said, lines)?,
    };
    Ok(answer::bytes(200, "text/plain", said.to_owned()))
}

/// The requested container. The name is optional for a pod with a single one.
fn container<'a>(pod: &'a Object, asked: &str) -> Result<&'a str, ApiError> {
    let of = |key: &str| {
        pod.value()["spec"]
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let names: Vec<&str> = ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(of)
        .map(|container| text(container, "/name"))
        .collect();
    let mut regular = of("containers").map(|container| text(container, "/name"));
    match (asked, regular.next(), regular.next()) {
        ("", Some(only), None) => Ok(only),
        ("", ..) => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {}, choose one of: [{}]",
            pod.name(),
            names.join(" ")
        ))),
        _ => names.into_iter().find(|name| *name == asked).ok_or_else(|| {
            ApiError::bad_request(format!("container {asked} is not valid for pod {}", pod.name()))
        }),
    }
}

/// The last lines of a text.
fn last<'a>(said: &'a str, lines: &str) -> Result<&'a str, ApiError> {
    let lines: usize = lines.parse().map_err(|_| {
        ApiError::bad_request(format!(
            "tailLines: Invalid value: \"{lines}\": must be greater than or equal to 0"
        ))
    })?;
    let ends = said.match_indices('\n').map(|(end, _)| end + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
    let start = starts.len().saturating_sub(1).saturating_sub(lines);
    Ok(starts
        .get(start)
        .and_then(|start| said.get(*start..))
        .unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_cut_out() {
        for (lines, wanted) in [
            ("0", ""),
            ("1", "c\n"),
            ("2", "b\nc\n"),
            ("3", "a\nb\nc\n"),
            ("9", "a\nb\nc\n"),
        ] {
            assert_eq!(last("a\nb\nc\n", lines).unwrap(), wanted, "{lines}");
        }
        assert_eq!(last("", "1").unwrap(), "");
        assert_eq!(last("a\n", "-1").unwrap_err().code, 400);
    }
}
