//! What a run may cost.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The budgets of one run. They hold over all its resumes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most tokens, read and written together.
    pub max_tokens: u64,
    /// The most calls of the model.
    pub max_iterations: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_tokens: 200_000,
            max_iterations: 50,
        }
    }
}

/// Tokens of one call of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Read by the model. Tokens from a cache and into it count as well: they are cheaper, not free, and a budget should not
    /// depend on what a provider happens to remember.
    pub input: u64,
    /// Written by it.
    pub output: u64,
}

impl Tokens {
    /// Both together.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// What a run has cost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Tokens of all calls.
    pub tokens: Tokens,
    /// Calls of the model that gave a reply.
    pub iterations: u32,
}

impl Spent {
    /// Adds one call.
    pub fn charge(&mut self, tokens: Tokens) {
        self.tokens.input = self.tokens.input.saturating_add(tokens.input);
        self.tokens.output = self.tokens.output.saturating_add(tokens.output);
        self.iterations = self.iterations.saturating_add(1);
    }
}

/// A budget that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BudgetSpent {
    /// [`Limits::max_tokens`].
    #[error("budget spent: max_tokens ({used} of {limit} tokens are used)")]
    MaxTokens {
        /// Tokens used.
        used: u64,
        /// The budget.
        limit: u64,
    },
    /// [`Limits::max_iterations`].
    #[error("budget spent: max_iterations (the model was called {used} times of {limit})")]
    MaxIterations {
        /// Calls made.
        used: u32,
        /// The budget.
        limit: u32,
    },
}

impl Limits {
    /// The tokens that are left for another call, at least 1.
    ///
    /// # Errors
    /// The budget that is spent.
    pub fn room(&self, spent: &Spent) -> Result<u64, BudgetSpent> {
        if spent.iterations >= self.max_iterations {
            return Err(BudgetSpent::MaxIterations {
                used: spent.iterations,
                limit: self.max_iterations,
            });
        }
        match self.max_tokens.checked_sub(spent.tokens.total()) {
            Some(room) if room > 0 => Ok(room),
            Some(_) | None => Err(BudgetSpent::MaxTokens {
                used: spent.tokens.total(),
                limit: self.max_tokens,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        max_tokens: 100,
        max_iterations: 3,
    };

    // check: FISK-24
    #[test]
    fn what_is_spent_to_the_last_token_leaves_no_room_for_a_call() {
        let mut spent = Spent::default();
        assert_eq!(LIMITS.room(&spent), Ok(100));
        spent.charge(Tokens {
            input: 90,
            output: 9,
        });
        assert_eq!(LIMITS.room(&spent), Ok(1));
        spent.charge(Tokens {
            input: 1,
            output: 0,
        });
        let told = LIMITS.room(&spent).unwrap_err().to_string();
        assert_eq!(
            told,
            "budget spent: max_tokens (100 of 100 tokens are used)"
        );
    }

    // check: FISK-24
    #[test]
    fn the_last_iteration_is_the_last() {
        let mut spent = Spent::default();
        for _ in 0..3 {
            assert!(LIMITS.room(&spent).is_ok());
            spent.charge(Tokens::default());
        }
        assert_eq!(
            LIMITS.room(&spent),
            Err(BudgetSpent::MaxIterations { used: 3, limit: 3 })
        );
    }

    #[test]
    fn a_provider_that_counts_beyond_all_bounds_spends_the_budget() {
        let mut spent = Spent::default();
        spent.charge(Tokens {
            input: u64::MAX,
            output: u64::MAX,
        });
        assert!(LIMITS.room(&spent).is_err());
    }
}
