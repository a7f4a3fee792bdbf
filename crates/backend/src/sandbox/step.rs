//! One step of a stage, and how it fails.

use super::config::StageError;

/// The result of one step.
pub type Step<T> = Result<T, StageError>;

/// Names the facility that a failed call was about.
pub fn need<T, E: std::fmt::Display>(facility: &str, result: Result<T, E>) -> Step<T> {
    result.map_err(|e| problem(facility, e.to_string()))
}

/// An error that is no kernel's.
pub fn problem(facility: &str, detail: String) -> StageError {
    StageError {
        facility: facility.to_owned(),
        detail,
    }
}
