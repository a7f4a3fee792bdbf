//! One answer of the script.

use std::{io, time::Duration};

use axum::{
    body::Body,
    http::{Response, header::CONTENT_TYPE},
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value, json};

use super::render;
use crate::types::{Block, Usage};

/// What the server answers to one request.
#[derive(Debug, Clone)]
pub struct Turn {
    status: u16,
    headers: Vec<(String, String)>,
    content: Content,
    stop: Option<String>,
    usage: Option<Usage>,
    delay: Duration,
    pieces: usize,
    pace: Duration,
    end: End,
}

#[derive(Debug, Clone)]
enum Content {
    Blocks(Vec<Block>),
    Whole(Vec<Block>),
    Error { kind: String, message: String },
    Raw(Bytes),
}

/// What follows the last byte.
#[derive(Debug, Clone, Copy)]
enum End {
    Clean,
    Drop { after: usize },
    Hang { after: usize },
    Repeat,
}

impl Turn {
    fn new(status: u16, content: Content) -> Self {
        Self {
            status,
            headers: Vec::new(),
            content,
            stop: None,
            usage: Some(Usage {
                input: 10,
                output: 5,
                ..Usage::default()
            }),
            delay: Duration::ZERO,
            pieces: usize::MAX,
            pace: Duration::ZERO,
            end: End::Clean,
        }
    }

    /// A streamed reply of these blocks.
    pub fn blocks(blocks: impl IntoIterator<Item = Block>) -> Self {
        Self::new(200, Content::Blocks(blocks.into_iter().collect()))
    }

    /// A streamed text, which ends the turn.
    pub fn text(text: &str) -> Self {
        Self::blocks([Block::Text {
            text: text.to_owned(),
        }])
    }

    /// A streamed call of a tool. An input that is no object is written as it is.
    pub fn tool_use(id: &str, name: &str, input: Value) -> Self {
        Self::blocks([]).and_tool_use(id, name, input)
    }

    /// A streamed thought; more blocks follow with [`and_text`](Self::and_text) and [`and_tool_use`](Self::and_tool_use).
    pub fn thinking(thinking: &str, signature: &str) -> Self {
        Self::blocks([Block::Thinking {
            thinking: thinking.to_owned(),
            signature: signature.to_owned(),
        }])
    }

    /// With a text behind it.
    #[must_use]
    pub fn and_text(self, text: &str) -> Self {
        self.and(Block::Text {
            text: text.to_owned(),
        })
    }

    /// With a call of a tool behind it.
    #[must_use]
    pub fn and_tool_use(self, id: &str, name: &str, input: Value) -> Self {
        let (input, malformed) = match input {
            Value::Object(input) => (input, None),
            Value::String(raw) => (Map::new(), Some(raw)),
            other => (Map::new(), Some(other.to_string())),
        };
        self.and(Block::ToolUse {
            id: id.to_owned(),
            name: name.to_owned(),
            input,
            malformed,
        })
    }

    /// With a block behind it. Nothing is added to an error or a raw answer.
    #[must_use]
    pub fn and(mut self, block: Block) -> Self {
        match &mut self.content {
            Content::Blocks(blocks) | Content::Whole(blocks) => blocks.push(block),
            Content::Error { .. } | Content::Raw(_) => {}
        }
        self
    }

    /// An error with a status.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        Self::new(
            status,
            Content::Error {
                kind: kind.to_owned(),
                message: message.to_owned(),
            },
        )
    }

    /// Any bytes with status 200.
    pub fn raw(content_type: &str, bytes: impl Into<Bytes>) -> Self {
        Self::new(200, Content::Raw(bytes.into())).header(CONTENT_TYPE.as_str(), content_type)
    }

    /// With another status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// As one JSON document instead of a stream.
    #[must_use]
    pub fn in_one_piece(mut self) -> Self {
        if let Content::Blocks(blocks) = self.content {
            self.content = Content::Whole(blocks);
        }
        self
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With this stop reason, in the words of the API, instead of the one that follows from the blocks.
    #[must_use]
    pub fn stop(mut self, reason: &str) -> Self {
        self.stop = Some(reason.to_owned());
        self
    }

    /// With this usage; `None` tells none.
    #[must_use]
    pub fn usage(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage;
        self
    }

    /// Begins to answer only after a while.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Writes so many bytes at a time, with a pause between.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize, pace: Duration) -> Self {
        self.pieces = bytes.max(1);
        self.pace = pace;
        self
    }

    /// Drops the connection after so many bytes of the body.
    #[must_use]
    pub fn drop_after(mut self, bytes: usize) -> Self {
        self.end = End::Drop { after: bytes };
        self
    }

    /// Falls silent after so many bytes of the body, with the connection open.
    #[must_use]
    pub fn hang_after(mut self, bytes: usize) -> Self {
        self.end = End::Hang { after: bytes };
        self
    }

    /// Writes its body again and again, as long as somebody reads.
    #[must_use]
    pub fn endless(mut self) -> Self {
        self.end = End::Repeat;
        self
    }

    pub(super) async fn respond(self, openai: bool) -> Response<Body> {
        tokio::time::sleep(self.delay).await;
        let stop = self.stop.as_deref();
        let (kind, mut body) = match &self.content {
            Content::Blocks(blocks) => {
                let text = if openai {
                    render::openai_stream(blocks, stop, self.usage)
                } else {
                    render::anthropic_stream(blocks, stop, self.usage)
                };
                ("text/event-stream", Bytes::from(text))
            }
            Content::Whole(blocks) => {
                let value = if openai {
                    render::openai_whole(blocks, stop, self.usage)
                } else {
                    render::anthropic_whole(blocks, stop, self.usage)
                };
                ("application/json", Bytes::from(value.to_string()))
            }
            Content::Error { kind, message } => {
                let value = json!({"type": "error", "error": {"type": kind, "message": message}});
                ("application/json", Bytes::from(value.to_string()))
            }
            Content::Raw(bytes) => ("application/octet-stream", bytes.clone()),
        };
        let mut response = Response::builder().status(self.status);
        if !self
            .headers
            .iter()
            .any(|(name, _)| name == CONTENT_TYPE.as_str())
        {
            response = response.header(CONTENT_TYPE, kind);
        }
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        if let End::Drop { after } | End::Hang { after } = self.end {
            body.truncate(after);
        }
        let mut chunks = Vec::new();
        while !body.is_empty() {
            chunks.push(body.split_to(self.pieces.min(body.len())));
        }
        let pace = self.pace;
        let written = stream::iter(chunks.clone()).then(move |chunk| async move {
            if !pace.is_zero() {
                tokio::time::sleep(pace).await;
            }
            Ok::<_, io::Error>(chunk)
        });
        let body = match self.end {
            End::Clean => Body::from_stream(written),
            End::Drop { .. } => Body::from_stream(written.chain(stream::once(async {
                // What was written has to leave before the connection does.
                tokio::time::sleep(Duration::from_millis(5)).await;
                Err(io::Error::other("dropped as scripted"))
            }))),
            End::Hang { .. } => Body::from_stream(written.chain(stream::pending())),
            End::Repeat => {
                Body::from_stream(stream::iter(chunks.into_iter().cycle()).map(Ok::<_, io::Error>))
            }
        };
        response
            .body(body)
            .expect("a status and headers that HTTP knows")
    }
}
