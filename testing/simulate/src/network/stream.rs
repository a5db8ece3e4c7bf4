//! The answer of a watch: each event takes its time, their order stays, and at any moment the watch may be cut.

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use kube::client::DynBody;
use stanchion_sandbox::Body;
use tokio::time::sleep;
use tower::BoxError;

use super::Network;

type Event = Result<bytes::Bytes, std::convert::Infallible>;

struct Watch {
    network: Network,
    replica: usize,
    like: String,
    events: BoxStream<'static, Event>,
    cuts: usize,
}

/// The same answer, delayed.
pub(super) fn delayed(
    network: &Network,
    replica: usize,
    like: &str,
    answer: Response<Body>,
) -> Response<Box<DynBody>> {
    let cuts = network.state().cuts;
    answer.map(|body| {
        let watch = Watch {
            network: network.clone(),
            replica,
            like: format!("{like} events"),
            events: Box::pin(body.into_data_stream()),
            cuts,
        };
        Box::new(StreamBody::new(Box::pin(watch.deliver()))) as Box<DynBody>
    })
}

impl Watch {
    fn deliver(self) -> impl Stream<Item = Result<Frame<bytes::Bytes>, BoxError>> + Send {
        stream::unfold(self, |mut watch| async move {
            let event = watch.next().await?;
            Some((Ok(Frame::data(event)), watch))
        })
    }

    async fn next(&mut self) -> Option<bytes::Bytes> {
        let Self {
            network,
            replica,
            like,
            events,
            cuts,
        } = self;
        let arrives = async {
            let Ok(event) = events.next().await?;
            sleep(network.0.latency.next(like)).await;
            network.reached(*replica).await;
            Some(event)
        };
        tokio::select! {
            biased;
            () = network.until(|state| state.cuts > *cuts) => None,
            event = arrives => event,
        }
    }
}
