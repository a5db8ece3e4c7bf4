//! Ages, in kubectl's format.

use jiff::Timestamp;

use crate::clock::Clock;

/// The time since a timestamp; `<unknown>` if the text is not one.
pub(crate) fn since(time: &str, clock: &Clock) -> String {
    time.parse::<Timestamp>().map_or_else(
        |_| "<unknown>".to_owned(),
        |then| human(clock.now().as_second().saturating_sub(then.as_second()).max(0)),
    )
}

/// A duration with the significant units.
pub(crate) fn human(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |big: i64, unit: &str, small: i64, rest: &str| {
        if small == 0 {
            format!("{big}{unit}")
        } else {
            format!("{big}{unit}{small}{rest}")
        }
    };
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        pair(minutes, "m", seconds % 60, "s")
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        pair(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        pair(days, "d", hours % 24, "h")
    } else if days < 730 {
        format!("{days}d")
    } else {
        pair(days / 365, "y", days % 365, "d")
    }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn ages_read_as_in_kubectl() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_800, "3h"),
            (11_000, "3h3m"),
            (30_000, "8h"),
            (180_000, "2d2h"),
            (800_000, "9d"),
            (70_000_000, "2y80d"),
        ] {
            assert_eq!(human(seconds), text);
        }
    }
}
