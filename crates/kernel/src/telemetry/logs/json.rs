//! One flat JSON object per line.
//!
//! tracing-subscriber's own JSON format can flatten an event, but not its span: the object of a line would be in
//! `span.namespace` and `span.name`, beside the span's own `name`. Queries of log collectors use the keys at the top, so
//! this format stays.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields, FormattedFields,
        format::{JsonFields, Writer},
    },
    registry::{LookupSpan, Scope},
};

/// Formats an event with its own fields and those of its spans, the inner ones last.
pub(super) struct FlatJson;

impl<S, N> FormatEvent<S, N> for FlatJson
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), format!("{:.3}", Timestamp::now()).into());
        line.insert("level".to_owned(), event.metadata().level().as_str().into());
        line.insert("target".to_owned(), event.metadata().target().into());
        for span in ctx.event_scope().into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<JsonFields>>();
            if let Some(Ok(fields)) = fields.map(|fields| serde_json::from_str::<Map<String, Value>>(fields))
            {
                line.extend(fields);
            }
        }
        event.record(&mut Fields(&mut line));
        without_log_crate_fields(&mut line);
        let line = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
        writeln!(writer, "{line}")
    }
}

/// A line of the `log` crate is an event whose real target is in one of four extra fields.
fn without_log_crate_fields(line: &mut Map<String, Value>) {
    if let Some(target) = line.remove("log.target") {
        line.insert("target".to_owned(), target);
        line.retain(|key, _| !key.starts_with("log."));
    }
}

struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}
