//! Notes to the phones in a room: who joined, who left, and the roster.

use serde_json::{Map, Value, json};
use sidetone_model::room::Role;

use crate::conference::live::{Live, Member};
use crate::conference::outputs::Outputs;
use crate::conference::{Output, RoomNote, RoomPhone};

impl Live {
    /// Notifies the other phones that a member joined.
    pub(super) fn note_join(&self, id: u32, name: &str, outputs: &mut Outputs) {
        self.note_move(id, name, "member-join", "joined", outputs);
    }

    /// Notifies the remaining phones that a member left.
    pub(super) fn note_leave(&self, id: u32, name: &str, outputs: &mut Outputs) {
        self.note_move(id, name, "member-leave", "left", outputs);
    }

    /// Sends the roster to a member's phone.
    pub(super) fn note_roster(&self, id: u32, outputs: &mut Outputs) {
        let to = self.members.get(&id).and_then(Member::phone);
        if let Some(phone) = to {
            self.note(vec![phone], self.roster(), outputs);
        }
    }

    fn note_move(&self, id: u32, name: &str, event: &str, verb: &str, outputs: &mut Outputs) {
        let others = self.members.values().filter(|member| member.id != id);
        let name = cut(name, NAME_MAX);
        let fields = [
            ("title", Value::from(format!("{name} {verb}"))),
            ("level", "info".into()),
            ("event", event.into()),
            ("member", id.into()),
            ("name", name.into()),
            ("count", self.members.len().into()),
        ];
        self.note(others.filter_map(Member::phone).collect(), object(fields), outputs);
    }

    /// Builds the roster note. Its title is the room's name. A roster too large for a note is cut, moderators
    /// first; `count` gives the number of all members.
    fn roster(&self) -> Map<String, Value> {
        let title = if self.title.is_empty() { "Conference".to_owned() } else { cut(&self.title, TITLE_MAX) };
        let mut note = object([
            ("title", title.into()),
            ("level", "info".into()),
            ("event", "roster".into()),
            ("count", self.members.len().into()),
            ("members", Value::Array(Vec::new())),
        ]);
        let mut left = NOTE_BYTES_MAX.saturating_sub(ID_BYTES + written(&Value::Object(note.clone())));
        let mut members = Vec::new();
        let of = |role| self.members.values().filter(move |member: &&Member| member.role == role);
        for member in of(Role::Moderator).chain(of(Role::Participant)) {
            let name = cut(member.shown(), NAME_MAX);
            let row = json!({"member": member.id, "name": name, "role": member.role.as_str()});
            // Plus one for the comma.
            let bytes = written(&row) + 1;
            if bytes > left {
                break;
            }
            left -= bytes;
            members.push(row);
        }
        note.insert("members".to_owned(), Value::Array(members));
        note
    }

    fn note(&self, to: Vec<RoomPhone>, payload: Map<String, Value>, outputs: &mut Outputs) {
        if !to.is_empty() {
            let (organisation, room, session) = (self.organisation, self.name, self.session);
            outputs.push(Output::Note(RoomNote { organisation, room, session, to, payload }));
        }
    }
}

impl Member {
    /// The name that others see, else the number.
    pub(super) fn shown(&self) -> &str {
        [self.name.as_str(), self.number.as_str()]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or("Unknown caller")
    }

    /// Returns the phone of an extension. Outside parties do not show notes.
    fn phone(&self) -> Option<RoomPhone> {
        self.extension?;
        Some(RoomPhone { member: self.id, name: self.shown().to_owned(), call: self.call, leg: self.leg })
    }
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn written(value: &Value) -> usize {
    value.to_string().len()
}

/// Returns the first characters of a text, without control characters.
fn cut(text: &str, characters_max: usize) -> String {
    text.chars().filter(|character| !character.is_control()).take(characters_max).collect()
}

/// Bytes of a note as it is sent: it must be shorter than 4 KB.
const NOTE_BYTES_MAX: usize = 4095;

/// Bytes of the id: `"id":"`, a UUID, the closing quote and a comma.
const ID_BYTES: usize = 44;

/// Characters of a name that are shown.
const NAME_MAX: usize = 64;

/// Characters of a title.
const TITLE_MAX: usize = 200;
