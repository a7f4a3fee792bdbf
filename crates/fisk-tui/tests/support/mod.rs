//! A person in front of the state machine.

#![allow(dead_code)]

use fisk_domain::event::Event;
use fisk_operator::{ApprovalRequest, Confirm, Input, Select};
use fisk_tui::{App, Effect, Key, Question, Reply, draw};
use fuse_terminal::Exact;
use ratatui::{buffer::Buffer, layout::Rect};

pub struct Person {
    pub app: App,
    pub size: (u16, u16),
    next: u64,
}

impl Person {
    pub fn new(columns: u16, rows: u16) -> Self {
        let mut person = Self {
            app: App::new("demo", true),
            size: (columns, rows),
            next: 1,
        };
        person.resize(columns, rows);
        person
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.size = (columns, rows);
        self.app.on_resize(columns, rows);
    }

    pub fn buffer(&mut self) -> Buffer {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        draw(&self.app, area, &mut buffer);
        self.app.drawn();
        buffer
    }

    /// What stands on the screen, row by row, without blanks at their ends.
    pub fn screen(&mut self) -> String {
        let buffer = self.buffer();
        let (columns, rows) = self.size;
        let mut out = String::new();
        for y in 0..rows {
            let mut x = 0;
            let mut row = String::new();
            while x < columns {
                let symbol = buffer[(x, y)].symbol();
                row.push_str(symbol);
                let width = unicode_width(symbol).max(1);
                x += u16::try_from(width).expect("a width");
            }
            out.push_str(row.trim_end());
            out.push('\n');
        }
        out
    }

    /// A line end on the screen may be one that was wrapped.
    pub fn sees(&mut self, text: &str) {
        let screen = self.screen();
        let unwrapped = screen.replace('\n', " ");
        assert!(
            unwrapped.contains(text) || screen.contains(text),
            "{text:?} is not in\n{screen}"
        );
    }

    pub fn sees_not(&mut self, text: &str) {
        let screen = self.screen();
        assert!(!screen.contains(text), "{text:?} is in\n{screen}");
    }

    pub fn event(&mut self, event: Event) {
        self.app.on_event(event);
    }

    /// Asks as the shell does: drawn, then armed, then drawn with what the keys do.
    pub fn ask(&mut self, question: Question) -> Option<Effect> {
        let refused = self.app.ask(self.next, question);
        self.next += 1;
        self.buffer();
        self.app.arm();
        self.buffer();
        refused
    }

    /// Keys one by one, each drawn.
    pub fn types(&mut self, keys: &[Key]) -> Option<Reply> {
        for key in keys {
            let reply = self.at_once(std::slice::from_ref(key));
            if reply.is_some() {
                return reply;
            }
        }
        None
    }

    pub fn at_once(&mut self, keys: &[Key]) -> Option<Reply> {
        let effects = self.app.on_keys(keys);
        self.buffer();
        effects.into_iter().find_map(|effect| match effect {
            Effect::Reply { reply, .. } => Some(reply),
            Effect::Interrupt => None,
        })
    }

    pub fn text(&mut self, text: &str) -> Option<Reply> {
        let keys: Vec<Key> = text.chars().map(Key::Char).collect();
        self.types(&keys)
    }
}

fn unicode_width(symbol: &str) -> usize {
    use ratatui::buffer::CellWidth;
    usize::from(symbol.cell_width())
}

pub fn approve<const N: usize>(argv: [&str; N]) -> Question {
    Question::Approve(ApprovalRequest {
        tool: "stream_rm".to_owned(),
        command: Exact::argv(argv),
        tags: vec!["ai:confirm".to_owned()],
    })
}

pub fn confirm(question: &str) -> Question {
    Question::Confirm(Confirm {
        question: question.to_owned(),
        default: Some(true),
    })
}

pub fn select(options: &[&str]) -> Question {
    Question::Select(Select {
        question: "Which one?".to_owned(),
        options: options.iter().map(|o| (*o).to_owned()).collect(),
        default: options.first().map(|o| (*o).to_owned()),
    })
}

pub fn input(default: Option<&str>) -> Question {
    Question::Input(Input {
        question: "What name?".to_owned(),
        default: default.map(str::to_owned),
    })
}
