//! "Did you mean …?" suggestions.

/// The known word nearest to the written one, if it is near enough.
pub(super) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = written.to_lowercase();
    known
        .into_iter()
        .map(|word| (distance(&folded, &word.to_lowercase()), word))
        .filter(|(distance, word)| {
            *distance <= (word.chars().count().max(written.chars().count()) / 3).max(1)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// The help text with that suggestion.
pub(super) fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(written, known).map(|word| format!("did you mean `{word}`?"))
}

/// The edit distance of two words: insertions, deletions, replacements and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let width = b.len() + 1;
    let mut rows: Vec<Vec<usize>> = vec![(0..width).collect()];
    let cell = |rows: &[Vec<usize>], i: usize, j: usize| -> usize {
        rows.get(i)
            .and_then(|row| row.get(j))
            .copied()
            .unwrap_or(usize::MAX / 2)
    };
    for (i, ca) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, cb) in b.iter().enumerate() {
            let left = row.last().copied().unwrap_or_default() + 1;
            let mut best = left
                .min(cell(&rows, i, j + 1) + 1)
                .min(cell(&rows, i, j) + usize::from(ca != cb));
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(cb) && b.get(j - 1) == Some(ca);
            if swapped {
                best = best.min(cell(&rows, i - 1, j - 1) + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    cell(&rows, a.len(), b.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_are_recognised_and_other_words_are_not() {
        let keys = [
            "name",
            "login",
            "superuser",
            "connection_limit",
            "password_valid_until",
        ];
        assert_eq!(nearest("lgoin", keys), Some("login"));
        assert_eq!(nearest("conection_limit", keys), Some("connection_limit"));
        assert_eq!(nearest("Name", keys), Some("name"));
        assert_eq!(nearest("description", keys), None);
        assert_eq!(nearest("", keys), None);
    }
}
