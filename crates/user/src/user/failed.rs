//! Why a step failed: the server's error, which decides what follows, or our own.

use stanchion_kernel::Problem;
use stanchion_postgres::Error;

use super::catalog::Unexpected;

pub(super) enum Failed {
    Sql(Error),
    Ours(Problem),
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Ours(problem)
    }
}

impl From<Unexpected> for Failed {
    fn from(unexpected: Unexpected) -> Self {
        Self::Ours(unexpected.into())
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Failed> for Problem {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Sql(error) => error.into(),
            Failed::Ours(problem) => problem,
        }
    }
}
