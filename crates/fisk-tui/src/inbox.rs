//! What waits for the thread that draws, in bounded memory. Whoever puts something in is never held up.

use std::collections::VecDeque;

use fisk_domain::event::Event;

use crate::question::{Question, Reply};

/// The most events that wait.
const MAX_EVENTS: usize = 4096;
/// The most bytes of text in them.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// The most bytes of one text.
const MAX_TEXT: usize = 1024 * 1024;

/// How many events were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost(pub u64);

/// A question that nobody has seen yet.
#[derive(Debug)]
pub(crate) struct Asked {
    pub id: u64,
    pub question: Question,
    pub answer: tokio::sync::oneshot::Sender<Reply>,
}

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub events: VecDeque<Event>,
    bytes: usize,
    pub lost: u64,
    pub asked: VecDeque<Asked>,
    pub withdrawn: Vec<u64>,
}

impl Inbox {
    pub fn push(&mut self, mut event: Event) {
        bound(&mut event);
        let size = size(&event);
        match (self.events.back_mut(), &event) {
            (Some(Event::Text(last)), Event::Text(more))
            | (Some(Event::Thinking(last)), Event::Thinking(more))
                if last.len() + more.len() <= MAX_TEXT =>
            {
                last.push_str(more);
            }
            _ => self.events.push_back(event),
        }
        self.bytes += size;
        // What the run asks about or is about to end with comes last, so the oldest go.
        while self.events.len() > MAX_EVENTS || self.bytes > MAX_BYTES {
            let Some(dropped) = self.events.pop_front() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(self::size(&dropped));
            self.lost += 1;
        }
    }

    /// All that waits; nothing does then.
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

fn size(event: &Event) -> usize {
    match event {
        Event::Text(text)
        | Event::Thinking(text)
        | Event::Notice(text)
        | Event::Answered(text)
        | Event::Failed(text)
        | Event::Suspended(text) => text.len(),
        Event::ToolEnded { id, result, .. } => id.len() + result.len(),
        Event::ToolCalled {
            id,
            tool,
            input,
            argv,
        } => {
            let argv: usize = argv.iter().flatten().map(String::len).sum();
            id.len() + tool.len() + input.to_string().len() + argv
        }
        Event::Retrying { reason, .. } => reason.len(),
        Event::TurnStarted { .. }
        | Event::Waiting { .. }
        | Event::Started { .. }
        | Event::Usage { .. } => 0,
    }
}

fn bound(event: &mut Event) {
    match event {
        Event::Text(text)
        | Event::Thinking(text)
        | Event::Notice(text)
        | Event::Failed(text)
        | Event::Suspended(text)
        | Event::ToolEnded { result: text, .. }
        | Event::Retrying { reason: text, .. } => shorten(text),
        // It is not shown.
        Event::Answered(text) => text.clear(),
        // What runs is shown exactly; its input only where there is no such thing.
        Event::ToolCalled { input, argv, .. } => {
            if argv.is_some() {
                *input = serde_json::Value::Null;
            }
        }
        Event::TurnStarted { .. }
        | Event::Waiting { .. }
        | Event::Started { .. }
        | Event::Usage { .. } => {}
    }
}

fn shorten(text: &mut String) {
    if text.len() > MAX_TEXT {
        let mut at = MAX_TEXT;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // check: FISK-83
    #[test]
    fn a_flood_that_nobody_draws_costs_bounded_memory_and_is_counted() {
        let mut inbox = Inbox::default();
        for _ in 0..64 {
            inbox.push(Event::Notice("x".repeat(MAX_TEXT)));
            inbox.push(Event::Text("y".repeat(3 * MAX_TEXT)));
        }
        // An input that was refused, of a model that says much.
        for _ in 0..64 {
            inbox.push(Event::ToolCalled {
                id: "1".to_owned(),
                tool: "t".to_owned(),
                input: serde_json::json!({"x": "z".repeat(MAX_TEXT)}),
                argv: None,
            });
        }
        let texts = |event: &Event| match event {
            Event::ToolCalled { input, .. } => input["x"].as_str().map_or(0, str::len),
            _ => 0,
        };
        assert!(inbox.events.iter().map(texts).sum::<usize>() <= MAX_BYTES);
        let held: usize = inbox.events.iter().map(size).sum();
        assert!(held <= MAX_BYTES, "{held}");
        assert!(inbox.lost > 0);
        let all = inbox.take();
        assert_eq!((inbox.events.len(), inbox.lost), (0, 0));
        assert!(all.events.len() <= MAX_EVENTS);
    }

    #[test]
    fn pieces_of_a_text_wait_as_one() {
        let mut inbox = Inbox::default();
        for piece in ["a", "b", "c"] {
            inbox.push(Event::Text(piece.to_owned()));
        }
        inbox.push(Event::Thinking("d".to_owned()));
        assert_eq!(
            inbox.events,
            [
                Event::Text("abc".to_owned()),
                Event::Thinking("d".to_owned())
            ]
        );
    }
}
