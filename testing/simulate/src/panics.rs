//! Panics of a run. A run has one thread, and so do the panics of its operators.

use std::cell::RefCell;

thread_local! {
    static FOUND: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// From now on panics are kept for [`taken`]. Those that a schedule asks for are no news.
pub(crate) fn watch() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let message = info.payload_as_str().unwrap_or("without a message");
        if message.contains("boom in") {
            return;
        }
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        FOUND.with_borrow_mut(|found| found.push(format!("{place}: {message}")));
        usual(info);
    }));
}

/// The panics of this thread since the last call.
pub(crate) fn taken() -> Vec<String> {
    FOUND.take()
}
