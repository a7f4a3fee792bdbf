//! The actions on a desktop that a gate can hold, and how typed text is compared.

/// A desktop action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the wire's name for it")]
pub enum ComputerAction {
    Screenshot,
    CursorPosition,
    MouseMove,
    LeftClick,
    RightClick,
    MiddleClick,
    DoubleClick,
    TripleClick,
    LeftClickDrag,
    LeftMouseDown,
    LeftMouseUp,
    Type,
    Key,
    HoldKey,
    Scroll,
    Wait,
    Zoom,
}

impl ComputerAction {
    /// Every action, in the order of the documentation.
    pub const ALL: [Self; 17] = [
        Self::Screenshot,
        Self::CursorPosition,
        Self::MouseMove,
        Self::LeftClick,
        Self::RightClick,
        Self::MiddleClick,
        Self::DoubleClick,
        Self::TripleClick,
        Self::LeftClickDrag,
        Self::LeftMouseDown,
        Self::LeftMouseUp,
        Self::Type,
        Self::Key,
        Self::HoldKey,
        Self::Scroll,
        Self::Wait,
        Self::Zoom,
    ];

    /// The wire's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Screenshot => "screenshot",
            Self::CursorPosition => "cursor_position",
            Self::MouseMove => "mouse_move",
            Self::LeftClick => "left_click",
            Self::RightClick => "right_click",
            Self::MiddleClick => "middle_click",
            Self::DoubleClick => "double_click",
            Self::TripleClick => "triple_click",
            Self::LeftClickDrag => "left_click_drag",
            Self::LeftMouseDown => "left_mouse_down",
            Self::LeftMouseUp => "left_mouse_up",
            Self::Type => "type",
            Self::Key => "key",
            Self::HoldKey => "hold_key",
            Self::Scroll => "scroll",
            Self::Wait => "wait",
            Self::Zoom => "zoom",
        }
    }

    /// The action of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }
}

/// Text without its case, for comparison only. Going down, up and down again joins letters that have several lower forms.
pub(in crate::policy) fn fold(text: &str) -> String {
    text.chars()
        .flat_map(char::to_lowercase)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_does_not_hide_a_text() {
        for (typed, wanted) in [
            ("SSH PROD.Example.COM", "prod.example.com"),
            ("stra\u{1e9e}e", "STRASSE"),
            (
                "\u{39f}\u{394}\u{39f}\u{3a3}",
                "\u{3bf}\u{3b4}\u{3bf}\u{3c2}",
            ),
        ] {
            assert!(fold(typed).contains(&fold(wanted)), "{typed} {wanted}");
        }
    }
}
