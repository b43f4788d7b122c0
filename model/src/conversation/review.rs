//! The review after the call: findings for a supervisor.

use std::collections::{BTreeSet, HashMap};

use crate::conversation::{Conversation, Flag, FlagKind, KnowledgeBase, Turn, TurnRole};

/// Returns the findings on a complete conversation; none when a human handled the call.
///
/// *Bounds*: at most 200 findings, in the order of their turns.
pub fn review(conversation: &Conversation) -> Vec<Flag> {
    if conversation.ai.is_none() {
        return Vec::new();
    }
    let profile = &conversation.profile;
    let mut flags = competitors(&conversation.turns, &profile.competitors);
    flags.extend(profile.knowledge_base.as_ref().and_then(|base| never_searched(&conversation.turns, base)));
    flags.sort_by_key(|flag| flag.seq);
    flags.truncate(FLAGS_MAX);
    flags
}

/// One finding for each agent turn and each competitor that it names, in the profile's order.
fn competitors(turns: &[Turn], names: &[String]) -> Vec<Flag> {
    let names = Names::new(names);
    let mut flags = Vec::new();
    for turn in turns.iter().filter(|turn| turn.role == TurnRole::Agent) {
        let named = names.standing_in(&folded(&turn.text));
        flags.extend(named.into_iter().map(|name| Flag {
            kind: FlagKind::Competitor,
            seq: turn.seq,
            detail: name.to_owned(),
        }));
        if flags.len() >= FLAGS_MAX {
            break;
        }
    }
    flags
}

/// Names to search for, found by their first character: a long transcript is read once, not once for each
/// name.
struct Names<'p> {
    written: Vec<&'p str>,
    by_first: HashMap<char, Vec<(usize, Vec<char>)>>,
}

impl<'p> Names<'p> {
    fn new(names: &'p [String]) -> Self {
        let mut by_first: HashMap<char, Vec<(usize, Vec<char>)>> = HashMap::new();
        for (index, name) in names.iter().enumerate() {
            let folded = folded(name.trim());
            if let Some(first) = folded.first() {
                by_first.entry(*first).or_default().push((index, folded));
            }
        }
        Self { written: names.iter().map(|name| name.trim()).collect(), by_first }
    }

    /// The names that occur in `text` as whole words: "Bolt" in "from Bolt's shop", not in "bolted".
    fn standing_in(&self, text: &[char]) -> Vec<&'p str> {
        let mut found = BTreeSet::new();
        for (at, first) in text.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| text.get(before));
            if runs_on(before, Some(first)) {
                continue;
            }
            let rest = text.get(at..).unwrap_or_default();
            for (index, name) in self.by_first.get(first).into_iter().flatten() {
                if rest.starts_with(name) && !runs_on(name.last(), rest.get(name.len())) {
                    found.insert(*index);
                }
            }
        }
        found.into_iter().filter_map(|index| self.written.get(index).copied()).collect()
    }
}

/// The finding is placed at the first answer. A turn of the agent before the caller has spoken is not an
/// answer.
fn never_searched(turns: &[Turn], base: &KnowledgeBase) -> Option<Flag> {
    let searched = |turn: &Turn| {
        turn.tool_name.as_ref().is_some_and(|name| base.search_tools.iter().any(|tool| tool == name))
    };
    if base.handed_over_whole || turns.iter().any(searched) {
        return None;
    }
    let answer = turns
        .iter()
        .skip_while(|turn| turn.role != TurnRole::Caller)
        .find(|turn| turn.role == TurnRole::Agent && !turn.text.trim().is_empty())?;
    Some(Flag {
        kind: FlagKind::NeverSearched,
        seq: answer.seq,
        detail: "answered without searching the knowledge base".to_owned(),
    })
}

/// Whether one word extends from `left` to `right`. A name that itself begins or ends with a symbol
/// ("Yahoo!") cannot extend there, and neither can one in a script without spaces between words.
fn runs_on(left: Option<&char>, right: Option<&char>) -> bool {
    let (Some(left), Some(right)) = (left, right) else { return false };
    if is_combining_mark(*right) {
        return true;
    }
    let word = |c: char| (c.is_alphanumeric() || c == '_' || is_combining_mark(c)) && !is_unspaced(c);
    word(*left) && word(*right)
}

/// Letters of scripts that write words or particles without spaces between them.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3040}'..='\u{30FF}'
        | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}')
}

/// The blocks of combining marks: an accent written as its own character is part of the word.
fn is_combining_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}')
}

/// Folds the text so that "STRASSE" equals "Straße" and "ΟΔΟΣ" equals "οδος"; any run of white space becomes
/// one space, so that a name of two words is found across a line end.
fn folded(text: &str) -> Vec<char> {
    let mut folded = Vec::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            if folded.last() != Some(&' ') {
                folded.push(' ');
            }
            continue;
        }
        for lower in c.to_uppercase().flat_map(char::to_lowercase) {
            match lower {
                // The final sigma becomes a sigma, and the dot of a Turkish capital I is removed.
                'ς' => folded.push('σ'),
                '\u{307}' if folded.last() == Some(&'i') => {}
                // A typographic apostrophe becomes an apostrophe.
                '’' => folded.push('\''),
                other => folded.push(other),
            }
        }
    }
    folded
}

/// The most findings of one review: enough to show that the problem is everywhere.
const FLAGS_MAX: usize = 200;
