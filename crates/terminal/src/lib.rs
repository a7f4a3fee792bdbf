//! Text from agents made safe for a terminal, and prompts.
