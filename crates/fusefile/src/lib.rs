//! The Fusefile: parsing, verdicts with a caret, compiling to a create request.
