//! What is kept of an output: its first half and its last half, in bounded memory, cut only between characters.

/// Bytes beyond each half that tell whether it is cut within a character; the longest has four.
const CONTEXT: usize = 3;

/// The first and the last `half` bytes of a stream.
///
/// It holds raw bytes while they come, which costs a copy and no decoding, and makes text of them once at the end. What
/// comes out depends on the bytes alone, not on how they were cut into pieces.
#[derive(Debug)]
pub struct HeadTail {
    half: usize,
    /// The first `half + CONTEXT` bytes.
    head: Vec<u8>,
    /// A ring of the last `half + CONTEXT` bytes behind the head; `next` is where it goes on once it is full.
    ring: Vec<u8>,
    next: usize,
    total: u64,
}

impl HeadTail {
    /// Keeps up to twice `half` bytes. Memory is taken as output comes.
    #[must_use]
    pub fn new(half: usize) -> Self {
        Self {
            half,
            head: Vec::new(),
            ring: Vec::new(),
            next: 0,
            total: 0,
        }
    }

    /// Takes what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let room = (self.half + CONTEXT - self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.push_ring(rest);
    }

    fn push_ring(&mut self, bytes: &[u8]) {
        let size = self.half + CONTEXT;
        // What the rest of this piece would overwrite at once is not copied.
        let mut bytes = &bytes[bytes.len().saturating_sub(size)..];
        let room = (size - self.ring.len()).min(bytes.len());
        self.ring.extend_from_slice(&bytes[..room]);
        bytes = &bytes[room..];
        while !bytes.is_empty() {
            let count = (size - self.next).min(bytes.len());
            self.ring[self.next..self.next + count].copy_from_slice(&bytes[..count]);
            self.next = (self.next + count) % size;
            bytes = &bytes[count..];
        }
    }

    /// What is held, for the other side of a connection: first bytes, last bytes, and how many there were in all.
    #[must_use]
    pub fn into_parts(mut self) -> (Vec<u8>, Vec<u8>, u64) {
        self.ring.rotate_left(self.next);
        (self.head, self.ring, self.total)
    }

    /// Most bytes of each of the two parts.
    #[must_use]
    pub fn part_limit(half: usize) -> usize {
        half.saturating_add(CONTEXT)
    }

    /// Puts parts together again; `None` where they cannot be those of any output.
    #[must_use]
    pub fn from_parts(half: usize, head: Vec<u8>, tail: Vec<u8>, total: u64) -> Option<Self> {
        let limit = Self::part_limit(half);
        let held = (head.len() + tail.len()) as u64;
        let whole = held == total && (tail.is_empty() || head.len() == limit);
        let cut = held < total && head.len() == limit && tail.len() == limit;
        let fits = head.len() <= limit && tail.len() <= limit;
        (fits && (whole || cut)).then_some(Self {
            half,
            head,
            ring: tail,
            next: 0,
            total,
        })
    }

    /// The text, and whether something is left out of it. Bytes that are no UTF-8 become U+FFFD.
    ///
    /// Without its marker the text has at most twice `half` bytes.
    #[must_use]
    pub fn finish(mut self) -> (String, bool) {
        self.ring.rotate_left(self.next);
        let held = (self.head.len() + self.ring.len()) as u64;
        if held == self.total {
            let mut all = self.head;
            all.extend_from_slice(&self.ring);
            let text = String::from_utf8_lossy(&all);
            if text.len() <= 2 * self.half {
                return (text.into_owned(), false);
            }
            return (join(&all, &all, 0, self.half, self.total), true);
        }
        let context = in_front(&self.ring);
        (
            join(&self.head, &self.ring, context, self.half, self.total),
            true,
        )
    }
}

/// How many bytes at the front of the ring belong to a character that began before it, or are too early to tell.
fn in_front(ring: &[u8]) -> usize {
    // A byte that continues no character starts one, or a replacement, whatever came before it. One that continues may
    // belong to a character that starts up to three bytes before it, but no further.
    let continues = |byte: &u8| byte & 0xc0 == 0x80;
    ring.iter()
        .take(CONTEXT)
        .take_while(|byte| continues(byte))
        .count()
}

/// Head, marker and tail. The tail's first `skip` bytes are no start of a character.
fn join(head: &[u8], tail: &[u8], skip: usize, half: usize, total: u64) -> String {
    let (mut text, from_head) = prefix(head, half);
    let (end, from_tail) = suffix(tail.get(skip..).unwrap_or_default(), half);
    let left_out = total - from_head - from_tail;
    text.push_str(&marker(left_out));
    text.push_str(&end);
    text
}

/// What stands between the two halves.
fn marker(left_out: u64) -> String {
    format!("\n[... {left_out} bytes left out ...]\n")
}

/// A character, or the replacement of what is none, and how many bytes it is made of.
fn characters(bytes: &[u8]) -> impl Iterator<Item = (char, usize)> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let broken = chunk.invalid().len();
        chunk
            .valid()
            .chars()
            .map(|c| (c, c.len_utf8()))
            .chain((broken > 0).then_some((char::REPLACEMENT_CHARACTER, broken)))
    })
}

/// The longest text of at most `limit` bytes from the start, and how many bytes it is made of.
fn prefix(bytes: &[u8], limit: usize) -> (String, u64) {
    let (mut text, mut used) = (String::new(), 0);
    for (c, count) in characters(bytes) {
        if text.len() + c.len_utf8() > limit {
            break;
        }
        text.push(c);
        used += count as u64;
    }
    (text, used)
}

/// The longest text of at most `limit` bytes up to the end, and how many bytes it is made of.
fn suffix(bytes: &[u8], limit: usize) -> (String, u64) {
    let mut size: usize = characters(bytes).map(|(c, _)| c.len_utf8()).sum();
    let (mut text, mut used) = (String::with_capacity(size.min(limit)), 0);
    for (c, count) in characters(bytes) {
        if size > limit {
            size -= c.len_utf8();
        } else {
            text.push(c);
            used += count as u64;
        }
    }
    (text, used)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rule in its plainest form, with everything in memory.
    fn model(bytes: &[u8], half: usize) -> (String, bool) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if text.len() <= 2 * half {
            return (text, false);
        }
        let all: Vec<(char, usize)> = characters(bytes).collect();
        let fits = |chars: &[(char, usize)]| {
            chars.iter().map(|(c, _)| c.len_utf8()).sum::<usize>() <= half
        };
        let head = (0..=all.len()).rev().find(|n| fits(&all[..*n])).unwrap();
        let tail = (0..=all.len()).find(|n| fits(&all[*n..])).unwrap();
        let left_out: usize = all[head..tail].iter().map(|(_, count)| count).sum();
        let mut text: String = all[..head].iter().map(|(c, _)| c).collect();
        text.push_str(&marker(left_out as u64));
        text.extend(all[tail..].iter().map(|(c, _)| c));
        (text, true)
    }

    fn kept(bytes: &[u8], half: usize, cuts: &[usize]) -> (String, bool) {
        let mut keep = HeadTail::new(half);
        let (mut rest, mut cuts) = (bytes, cuts.iter().cycle());
        while !rest.is_empty() {
            let at = cuts
                .next()
                .map_or(rest.len(), |n| (*n).clamp(1, rest.len()));
            keep.push(&rest[..at]);
            rest = &rest[at..];
        }
        keep.finish()
    }

    /// Text, broken text and single bytes in turn, so that characters lie across every cut.
    fn output() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            "[a-z\u{e9}\u{20ac}\u{1f600}]{0,12}".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..8),
            prop::sample::select(vec![
                vec![0xf0, 0x9f, 0x98],
                vec![0x80; 6],
                vec![0xe2, 0x82],
                vec![0xed, 0xa0, 0x80],
            ]),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        // check: FISK-36
        #[test]
        fn what_is_kept_is_what_the_plain_rule_keeps_however_the_output_is_cut(
            bytes in output(),
            half in 1_usize..48,
            cuts in prop::collection::vec(1_usize..80, 0..6),
        ) {
            let expected = model(&bytes, half);
            prop_assert_eq!(&kept(&bytes, half, &[]), &expected);
            prop_assert_eq!(&kept(&bytes, half, &cuts), &expected);
            let mut keep = HeadTail::new(half);
            keep.push(&bytes);
            let (head, tail, total) = keep.into_parts();
            let again = HeadTail::from_parts(half, head, tail, total).unwrap();
            prop_assert_eq!(&again.finish(), &expected);
            let (text, truncated) = expected;
            let allowed = if truncated { 2 * half + 80 } else { 2 * half };
            prop_assert!(text.len() <= allowed);
        }
    }

    #[test]
    fn exactly_the_limit_is_kept_whole_and_one_byte_more_is_not() {
        assert_eq!(kept(b"12345678", 4, &[3]), ("12345678".to_owned(), false));
        let (text, truncated) = kept(b"123456789", 4, &[3]);
        assert_eq!(text, "1234\n[... 1 bytes left out ...]\n6789");
        assert!(truncated);
    }

    #[test]
    fn bytes_that_are_no_text_do_not_outgrow_the_limit() {
        let (text, truncated) = kept(&[0xff; 4096], 64, &[100]);
        assert!(truncated);
        assert_eq!(text.matches('\u{fffd}').count(), 2 * 21);
        assert!(text.contains("[... 4054 bytes left out ...]"));
    }

    #[test]
    fn parts_of_no_output_are_refused() {
        for (head, tail, total) in [(8, 0, 8), (7, 8, 15), (7, 7, 13), (3, 0, 9), (2, 2, 4)] {
            let parts = HeadTail::from_parts(4, vec![b'x'; head], vec![b'x'; tail], total);
            assert!(parts.is_none(), "{head} {tail} {total}");
        }
    }

    #[test]
    fn memory_does_not_grow_with_the_output() {
        let mut keep = HeadTail::new(1024);
        for _ in 0..10_000 {
            keep.push(&[b'x'; 777]);
        }
        assert!(keep.head.capacity() + keep.ring.capacity() <= 8 * 1024);
    }
}
