//! A seed decides a run.

use stanchion_simulate::run::run;
use stanchion_simulate::schedule::Schedule;
use stanchion_simulate::stories::Kernel;
use stanchion_simulate::story::Story;

fn twice<S: Story>(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let schedule = Schedule::of::<S>(seed);
        let (one, two) = (run::<S>(&schedule), run::<S>(&schedule));
        let first = one.lines.iter().zip(&two.lines).find(|(one, two)| one != two);
        assert_eq!(first, None, "seed {seed}");
        assert_eq!(one, two, "seed {seed}");
    }
}

#[test]
fn a_seed_reproduces_a_run_of_the_kernel() {
    twice::<Kernel>(0..10);
}
