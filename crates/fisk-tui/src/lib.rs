//! The full-screen interface of a run: transcript, prompts, keys.
