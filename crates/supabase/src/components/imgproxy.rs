//! imgproxy: resizes images, for Storage.

use stanchion_api::supabase::image;

use super::{Component, Extras, Needs, Port, Probes, Resources};

pub(super) const COMPONENT: Component = Component {
    name: "imgproxy",
    field: "imgproxy",
    label: "image-proxy",
    condition: "ImgproxyReady",
    options: |spec| spec.imgproxy.as_ref().map(|imgproxy| &imgproxy.options),
    image: image::IMGPROXY,
    ports: &[Port::service("http", 5001)],
    open: false,
    resources: Resources::new(("128Mi", "100m"), ("512Mi", "500m")),
    user: 999,
    probes: |_| Probes::http("http", "/health", 30),
    logins: &[],
    keys: &[],
    routes: &[],
    needs: |_| Needs::default(),
    environment: |_, env| {
        env.set_all(&[
            ("IMGPROXY_BIND", ":5001"),
            ("IMGPROXY_USE_ETAG", "true"),
            ("IMGPROXY_AUTO_WEBP", "true"),
            ("IMGPROXY_MAX_SRC_RESOLUTION", "16.8"),
        ]);
    },
    extras: |_| Extras::default(),
};
