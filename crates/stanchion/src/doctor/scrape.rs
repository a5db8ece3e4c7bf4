//! Reads the plain metrics of the operator's pods, through the API server.
//!
//! The label that finds a pod is no proof that the operator runs in it: the pod of a tenant may answer. So an answer has a limit,
//! for errors too, and the pods are those of a Deployment that was found.

use futures::future::join_all;
use http::StatusCode;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::client::Body;
use serde_json::Value;

use super::snapshot::{Installation, Read};
use crate::cluster::{Cluster, Unreadable, items, printable, text};

/// The port of plain metrics.
const PORT: u16 = 8080;
/// An exposition is a few hundred kilobytes at most.
const LIMIT: usize = 8 << 20;
/// The number of characters of an error that are shown.
const SHOWN: usize = 300;

/// The plain metrics of all pods that serve them on a port, through the API server. Only the leader reconciles, and each
/// replica counts its own requests: the checks add the samples up. If one pod does not answer, there are no metrics,
/// because it may be the leader.
pub(super) async fn metrics(cluster: &Cluster, deployments: &[Value], pods: &[Value]) -> Read<String> {
    let installations: Vec<Installation<'_>> = deployments.iter().map(Installation::of).collect();
    let plain = pods.iter().filter(|pod| {
        // A mesh may have added a container of its own.
        let serves = items(pod, "/spec/containers")
            .flat_map(|container| items(container, "/ports"))
            .any(|port| text(port, "/name") == "metrics");
        serves
            && text(pod, "/status/phase") == "Running"
            && installations.iter().any(|installation| installation.selects(pod))
    });
    let read = join_all(plain.map(|pod| exposition(cluster, pod))).await;
    let texts = read.into_iter().collect::<Read<Vec<String>>>()?;
    if texts.is_empty() {
        return Err(Unreadable::NotServed);
    }
    Ok(texts.join("\n"))
}

/// The metrics of one pod.
async fn exposition(cluster: &Cluster, pod: &Value) -> Read<String> {
    let name = text(pod, "/metadata/name");
    let failed =
        |why: &str| Unreadable::Failed(format!("of the pod {}: {}", printable(name), printable(why)));
    let path = format!(
        "/api/v1/namespaces/{}/pods/{name}:{PORT}/proxy/metrics",
        text(pod, "/metadata/namespace"),
    );
    let request = http::Request::get(path).body(Body::empty());
    let request = request.map_err(|error| failed(&error.to_string()))?;
    let answer = cluster.ask(async {
        let response = cluster.client.send(request).await?;
        let status = response.status();
        Ok((status, Limited::new(response.into_body(), LIMIT).collect().await))
    });
    let (status, body) = answer.await.map_err(|why| failed(&why.words()))?;
    let body = match body {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(failed("the answer is too large")),
        Err(error) => return Err(failed(&error.to_string())),
    };
    let body = String::from_utf8_lossy(&body);
    match status {
        status if status.is_success() => Ok(body.into_owned()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Unreadable::Forbidden),
        // The pod is gone by now.
        StatusCode::NOT_FOUND => Err(failed("not found")),
        status => {
            let said: Option<Value> = serde_json::from_str(&body).ok();
            let said = said.as_ref().map_or(&*body, |said| text(said, "/message"));
            let shown: String = said.chars().take(SHOWN).collect();
            Err(failed(&format!("{status} {shown}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::{Client, Config};
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::doctor::metrics::sum;
    use crate::fixed_answers;

    fn deployment() -> Value {
        json!({
            "metadata": { "name": "stanchion", "namespace": "ops" },
            "spec": { "selector": { "matchLabels": { "app.kubernetes.io/name": "stanchion" } } },
        })
    }

    fn pod(name: &str, phase: &str) -> Value {
        json!({
            "metadata": {
                "name": name, "namespace": "ops",
                "labels": { "app.kubernetes.io/name": "stanchion", "pod-template-hash": "1" },
            },
            "spec": { "containers": [
                { "name": "mesh", "ports": [{ "name": "proxy", "containerPort": 15090 }] },
                { "name": "operator", "ports": [{ "name": "metrics", "containerPort": 8080 }] },
            ] },
            "status": { "phase": phase },
        })
    }

    /// With two replicas, one of them reconciles, and a request for the metrics of any pod may reach the other.
    #[tokio::test]
    async fn a_fault_of_the_second_pod_is_in_the_metrics() {
        let answers = [
            (
                "/api/v1/namespaces/ops/pods/standby:8080/proxy/metrics",
                "panics_total 0\n",
            ),
            (
                "/api/v1/namespaces/ops/pods/leader:8080/proxy/metrics",
                "panics_total 2",
            ),
        ];
        let cluster = fixed_answers::cluster(&answers).await;
        let pods = [
            pod("standby", "Running"),
            pod("leader", "Running"),
            pod("new", "Pending"),
        ];
        let text = metrics(&cluster, &[deployment()], &pods).await.unwrap();
        assert!((sum(&text, "panics_total", &[]) - 2.0).abs() < 0.001, "{text}");

        // The one that does not answer may be the leader.
        let pods = [pod("standby", "Running"), pod("silent", "Running")];
        let why = metrics(&cluster, &[deployment()], &pods).await.unwrap_err();
        assert!(why.words().contains("the pod silent"), "{why:?}");
        assert_eq!(
            metrics(&cluster, &[deployment()], &[]).await,
            Err(Unreadable::NotServed)
        );
    }

    #[tokio::test]
    async fn a_pod_of_no_deployment_of_the_operator_is_not_read() {
        let path = "/api/v1/namespaces/ops/pods/stranger:8080/proxy/metrics";
        let cluster = fixed_answers::cluster(&[(path, "panics_total 2")]).await;
        let pods = [pod("stranger", "Running")];
        let mut elsewhere = deployment();
        elsewhere["metadata"]["namespace"] = json!("team");
        let mut narrower = deployment();
        narrower["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"] = json!("stanchion");
        let mut all = deployment();
        all["spec"]["selector"]["matchLabels"] = json!({});
        for deployments in [vec![], vec![elsewhere], vec![narrower], vec![all]] {
            let read = metrics(&cluster, &deployments, &pods).await;
            assert_eq!(read, Err(Unreadable::NotServed), "{deployments:?}");
        }
        assert!(metrics(&cluster, &[deployment()], &pods).await.is_ok());
    }

    /// The answer has no end: without a limit, doctor would keep it until the timeout.
    #[tokio::test]
    async fn an_answer_without_an_end_is_not_kept() {
        for status in ["200 OK", "500 Internal Server Error"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let server = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read_u8().await;
                let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n");
                let mut sent = stream.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    sent = stream.write_all(&[b'x'; 1 << 13]).await;
                }
            });
            let cluster = Cluster {
                client: Client::try_from(Config::new(url.parse().unwrap())).unwrap(),
                url,
                namespace: None,
            };
            let pods = [pod("hostile", "Running")];
            let why = metrics(&cluster, &[deployment()], &pods).await.unwrap_err();
            assert!(why.words().contains("the answer is too large"), "{why:?}");
            // The connection is closed.
            server.await.unwrap();
        }
    }
}
