//! Which part of the transcript is on the screen. Only what is visible is ever wrapped.

use std::borrow::Cow;

use crate::{
    transcript::{Look, Transcript},
    wrap::{rows, width},
};

/// Where the top of the screen is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Scroll {
    /// The end stays at the bottom.
    #[default]
    Follow,
    /// Stays where it is while more comes.
    At(Mark),
}

/// A row, named so that it is still found when what is before it is dropped, folded or wrapped anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    seq: u64,
    line: usize,
    row: usize,
}

/// How the transcript is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    pub transcript: &'a Transcript,
    pub thinking: bool,
    pub selected: Option<u64>,
    pub columns: usize,
    pub height: usize,
}

/// A row of the screen.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub gutter: &'static str,
    pub text: Cow<'a, str>,
    pub look: Look,
}

/// A place among entries, lines and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    entry: usize,
    line: usize,
    row: usize,
}

impl<'a> Window<'a> {
    fn lines(&self, entry: usize) -> usize {
        self.transcript
            .entries()
            .get(entry)
            .map_or(0, |entry| entry.lines(self.thinking))
    }

    fn rows(&self, entry: usize, line: usize) -> Vec<Row<'a>> {
        let Some(entry) = self.transcript.entries().get(entry) else {
            return Vec::new();
        };
        let shown = entry.line(line, self.selected);
        let columns = self.columns.saturating_sub(width(shown.gutter));
        let row = |text| Row {
            gutter: shown.gutter,
            text,
            look: shown.look,
        };
        match shown.text {
            Cow::Borrowed(text) => rows(text, columns, shown.wrap)
                .map(|text| row(Cow::Borrowed(text)))
                .collect(),
            Cow::Owned(text) => rows(&text, columns, shown.wrap)
                .map(|text| row(Cow::Owned(text.to_owned())))
                .collect(),
        }
    }

    fn before(&self, place: Place) -> Option<Place> {
        if place.row > 0 {
            return Some(Place {
                row: place.row - 1,
                ..place
            });
        }
        let (entry, line) = if place.line > 0 {
            (place.entry, place.line - 1)
        } else {
            let entry = place.entry.checked_sub(1)?;
            (entry, self.lines(entry).saturating_sub(1))
        };
        let row = self.rows(entry, line).len().saturating_sub(1);
        Some(Place { entry, line, row })
    }

    fn after(&self, place: Place) -> Option<Place> {
        if place.row + 1 < self.rows(place.entry, place.line).len() {
            return Some(Place {
                row: place.row + 1,
                ..place
            });
        }
        if place.line + 1 < self.lines(place.entry) {
            return Some(Place {
                line: place.line + 1,
                row: 0,
                ..place
            });
        }
        (place.entry + 1 < self.transcript.entries().len()).then_some(Place {
            entry: place.entry + 1,
            line: 0,
            row: 0,
        })
    }

    fn last(&self) -> Option<Place> {
        let entry = self.transcript.entries().len().checked_sub(1)?;
        let line = self.lines(entry).saturating_sub(1);
        let row = self.rows(entry, line).len().saturating_sub(1);
        Some(Place { entry, line, row })
    }

    /// The top of the last screenful.
    fn bottom_top(&self) -> Option<Place> {
        let mut top = self.last()?;
        for _ in 1..self.height {
            match self.before(top) {
                Some(before) => top = before,
                None => break,
            }
        }
        Some(top)
    }

    fn top(&self, scroll: Scroll) -> Option<Place> {
        let bottom = self.bottom_top()?;
        match scroll {
            Scroll::Follow => Some(bottom),
            Scroll::At(mark) => Some(self.find(mark)?.min(bottom)),
        }
    }

    fn find(&self, mark: Mark) -> Option<Place> {
        let entry = self.transcript.position(mark.seq);
        let Some(found) = self.transcript.entries().get(entry) else {
            return self.last();
        };
        if found.seq != mark.seq {
            return Some(Place {
                entry,
                line: 0,
                row: 0,
            });
        }
        let line = mark.line.saturating_sub(found.dropped());
        let line = line.min(self.lines(entry).saturating_sub(1));
        let last = self.rows(entry, line).len().saturating_sub(1);
        Some(Place {
            entry,
            line,
            row: mark.row.min(last),
        })
    }

    fn mark(&self, place: Place) -> Scroll {
        match self.transcript.entries().get(place.entry) {
            Some(entry) => Scroll::At(Mark {
                seq: entry.seq,
                line: place.line + entry.dropped(),
                row: place.row,
            }),
            None => Scroll::Follow,
        }
    }

    pub fn up(&self, scroll: Scroll, by: usize) -> Scroll {
        let Some(mut top) = self.top(scroll) else {
            return Scroll::Follow;
        };
        let bottom = self.bottom_top();
        for _ in 0..by {
            match self.before(top) {
                Some(before) => top = before,
                None => break,
            }
        }
        if Some(top) == bottom {
            return Scroll::Follow;
        }
        self.mark(top)
    }

    pub fn down(&self, scroll: Scroll, by: usize) -> Scroll {
        let (Some(mut top), Some(bottom)) = (self.top(scroll), self.bottom_top()) else {
            return Scroll::Follow;
        };
        for _ in 0..by {
            match self.after(top) {
                Some(after) => top = after,
                None => break,
            }
        }
        if top >= bottom {
            return Scroll::Follow;
        }
        self.mark(top)
    }

    pub fn home(&self) -> Scroll {
        let first = Place {
            entry: 0,
            line: 0,
            row: 0,
        };
        match self.bottom_top() {
            Some(bottom) if bottom > first => self.mark(first),
            Some(_) | None => Scroll::Follow,
        }
    }

    /// So that the entry can be seen.
    pub fn show(&self, scroll: Scroll, seq: u64) -> Scroll {
        let entry = self.transcript.position(seq);
        let (Some(top), Some(bottom)) = (self.top(scroll), self.bottom_top()) else {
            return Scroll::Follow;
        };
        let place = Place {
            entry,
            line: 0,
            row: 0,
        };
        if place >= bottom {
            return Scroll::Follow;
        }
        let mut end = top;
        for _ in 1..self.height {
            end = self.after(end).unwrap_or(end);
        }
        if place >= top && place < end {
            return scroll;
        }
        self.mark(place)
    }

    /// The rows that are on the screen, from the top.
    pub fn visible(&self, scroll: Scroll) -> Vec<Row<'a>> {
        let mut out = Vec::with_capacity(self.height);
        let Some(top) = self.top(scroll) else {
            return out;
        };
        let (mut entry, mut line, mut skip) = (top.entry, top.line, top.row);
        while out.len() < self.height && entry < self.transcript.entries().len() {
            out.extend(self.rows(entry, line).into_iter().skip(skip));
            skip = 0;
            line += 1;
            if line >= self.lines(entry) {
                (entry, line) = (entry + 1, 0);
            }
        }
        out.truncate(self.height);
        out
    }
}
