//! The shortest list that still fails: whole stretches are left out first, then smaller ones, then single entries.

/// Leaves out what is not needed for `fails`. The result fails, and leaving out any one of its entries would not, as
/// far as `attempts` went.
pub fn shortest<T: Clone>(list: &[T], mut attempts: usize, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut list = list.to_vec();
    let mut stretch = list.len().div_ceil(2).max(1);
    loop {
        let mut start = 0;
        let mut shortened = false;
        while start < list.len() {
            if attempts == 0 {
                return list;
            }
            attempts -= 1;
            let end = (start + stretch).min(list.len());
            let mut candidate = list.clone();
            candidate.drain(start..end);
            if fails(&candidate) {
                list = candidate;
                shortened = true;
            } else {
                start = end;
            }
        }
        if stretch == 1 && !shortened {
            return list;
        }
        stretch = stretch.div_ceil(2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_stays() {
        let list: Vec<u32> = (0..100).collect();
        let needed = [3, 50, 97];
        let mut runs = 0;
        let short = shortest(&list, 1000, |list| {
            runs += 1;
            needed.iter().all(|entry| list.contains(entry))
        });
        assert_eq!(short, needed);
        assert!(runs < 100, "{runs}");
    }

    #[test]
    fn attempts_are_bounded() {
        let list: Vec<u32> = (0..100).collect();
        let mut runs = 0;
        shortest(&list, 5, |_| {
            runs += 1;
            false
        });
        assert_eq!(runs, 5);
    }

    #[test]
    fn what_always_fails_needs_nothing() {
        assert!(shortest(&[1, 2, 3], 100, |_| true).is_empty());
    }
}
