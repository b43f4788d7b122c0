//! What can be created and changed in the panel: the fields of the API that a form has. The API judges every value.

use serde_json::{Value, json};

use crate::form::Fields;
use crate::show::{items, text};

/// A resource of the API with a form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    /// Its list, below `/api/v1` and below `/settings`.
    pub(crate) path: &'static str,
    /// One of them.
    pub(crate) one: &'static str,
    /// The permission to change it.
    pub(crate) permission: &'static str,
    pub(crate) fields: &'static [Field],
}

/// A field of a form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) kind: Kind,
}

/// How a field is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One of these values.
    Choice(&'static [&'static str]),
    /// Yes or no.
    Flag,
    /// An id of this list, or none; the text names the field that is shown.
    Id(&'static str, &'static str),
    /// An id of one of these lists, or none: of each the path, the field that is shown, and what an entry is.
    IdOf(&'static [(&'static str, &'static str, &'static str)]),
    /// Texts, one in a line.
    Lines,
    Number,
    /// A secret: never shown, and changed only when entered.
    Secret,
    Text,
}

const fn field(name: &'static str, label: &'static str, kind: Kind) -> Field {
    Field { name, label, kind }
}

const TEAM: Field = field("team_id", "Team", Kind::Id("/teams", "name"));

/// The resources, by path.
pub(crate) const RESOURCES: [Resource; 8] = [
    Resource {
        path: "agents",
        one: "agent",
        permission: "directory:write",
        fields: &[
            field("name", "Name", Kind::Text),
            field("kind", "Kind", Kind::Choice(&["human", "virtual"])),
            TEAM,
            field("extension_id", "Extension", Kind::Id("/extensions", "number")),
        ],
    },
    Resource {
        path: "api-keys",
        one: "key",
        permission: "keys:write",
        fields: &[
            field("name", "Name", Kind::Text),
            field(
                "preset",
                "Permissions",
                Kind::Choice(&[
                    "read_only",
                    "billing",
                    "conferences",
                    "dialler",
                    "full",
                    "notes",
                    "recordings",
                ]),
            ),
            field("allow", "Addresses that may use it, one in a line", Kind::Lines),
            field("rate_per_minute", "Requests a minute", Kind::Number),
        ],
    },
    Resource {
        path: "conference-rooms",
        one: "room",
        permission: "conferences:write",
        fields: &[
            field("name", "Name", Kind::Text),
            field("number", "Number", Kind::Text),
            field("participant_pin", "PIN of participants", Kind::Text),
            field("moderator_pin", "PIN of moderators", Kind::Text),
            field("max_members", "Members at most (0: no limit)", Kind::Number),
            field("wait_for_moderator", "Wait for a moderator", Kind::Flag),
            field("end_when_moderator_leaves", "End when the moderator leaves", Kind::Flag),
            field("record", "Record every session", Kind::Flag),
            field("announce_names", "Announce members by their spoken names", Kind::Flag),
        ],
    },
    Resource {
        path: "extensions",
        one: "extension",
        permission: "directory:write",
        fields: &[
            field("number", "Number", Kind::Text),
            field("name", "Name", Kind::Text),
            field("password", "Password of its phones (empty: generated, or unchanged)", Kind::Secret),
            TEAM,
            field("srtp", "SRTP", Kind::Choice(&["off", "optional", "required", "webrtc"])),
            field("do_not_disturb", "Do not disturb", Kind::Flag),
        ],
    },
    Resource {
        path: "numbers",
        one: "number",
        permission: "directory:write",
        fields: &[
            field("number", "Number, such as +442079460123", Kind::Text),
            field("destination", "Kind of destination", Kind::Choice(&["conference", "extension"])),
            field(
                "destination_id",
                "Destination (none: the caller enters the number of a room)",
                Kind::IdOf(&[
                    ("/extensions", "number", "Extension"),
                    ("/conference-rooms", "number", "Room"),
                ]),
            ),
        ],
    },
    Resource {
        path: "teams",
        one: "team",
        permission: "directory:write",
        fields: &[field("name", "Name", Kind::Text)],
    },
    Resource {
        path: "users",
        one: "user",
        permission: "users:write",
        fields: &[
            field("email", "Email", Kind::Text),
            field("name", "Name", Kind::Text),
            field("password", "Password (empty: generated, or unchanged)", Kind::Secret),
            field(
                "role",
                "Role",
                Kind::Choice(&["agent", "team_supervisor", "org_member", "org_admin", "operator"]),
            ),
            TEAM,
            field("disabled", "Cannot log in", Kind::Flag),
        ],
    },
    Resource {
        path: "webhooks",
        one: "webhook",
        permission: "webhooks:write",
        fields: &[
            field("url", "URL", Kind::Text),
            field("description", "Description", Kind::Text),
            field("events", "Events, one in a line, such as call.*", Kind::Lines),
            field("active", "Active", Kind::Flag),
        ],
    },
];

/// The resource of that path.
pub(crate) fn resource(path: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|resource| resource.path == path)
}

impl Field {
    /// The value of a stored resource as the form shows it; secrets are not shown.
    pub(crate) fn shown(&self, item: &Value) -> String {
        match (&item[self.name], self.kind) {
            (_, Kind::Secret) => String::new(),
            (Value::Bool(flag), _) => if *flag { "1" } else { "" }.to_owned(),
            (Value::Array(lines), _) => lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
            (Value::Number(number), _) => number.to_string(),
            (value, _) => value.as_str().unwrap_or_default().to_owned(),
        }
    }

    /// The value for the API of what was entered; `None` leaves the field out.
    fn sent(&self, entered: &str, is_new: bool) -> Option<Value> {
        // A password is stored as it is entered; the login does not trim.
        let entered = if self.kind == Kind::Secret { entered } else { entered.trim() };
        match self.kind {
            Kind::Flag => Some(json!(!entered.is_empty())),
            Kind::Lines => Some(json!(
                entered.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>()
            )),
            _ if entered.is_empty() && (is_new || matches!(self.kind, Kind::Secret | Kind::Number)) => None,
            Kind::Id(..) | Kind::IdOf(_) if entered.is_empty() => Some(Value::Null),
            // What is no number is for the API to refuse.
            Kind::Number => {
                Some(entered.parse::<i64>().map_or_else(|_| json!(entered), |number| json!(number)))
            }
            Kind::Choice(_) | Kind::Id(..) | Kind::IdOf(_) | Kind::Secret | Kind::Text => {
                Some(json!(entered))
            }
        }
    }
}

impl Resource {
    /// The body that creates what was entered.
    pub(crate) fn created(&self, entered: &Fields) -> Value {
        let values = self
            .fields
            .iter()
            .filter_map(|field| Some((field.name.to_owned(), field.sent(entered.get(field.name), true)?)));
        Value::Object(values.collect())
    }

    /// The body that changes what the form showed to what was entered: only fields that differ.
    pub(crate) fn changed(&self, entered: &Fields) -> Value {
        let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
        let differs = |field: &&Field| lines(entered.get(field.name)) != lines(entered.get(&was(field.name)));
        let values =
            self.fields.iter().filter(differs).filter_map(|field| {
                Some((field.name.to_owned(), field.sent(entered.get(field.name), false)?))
            });
        Value::Object(values.collect())
    }
}

/// The name of the hidden field with what the form showed.
pub(crate) fn was(name: &str) -> String {
    format!("was.{name}")
}

/// The entries of a list as `(id, name)`.
pub(crate) fn choices(found: &Value, name: &str) -> Vec<(String, String)> {
    items(found).iter().map(|item| (text(item, "id").to_owned(), text(item, name).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(query: &str) -> Fields {
        Fields::of_query(Some(query))
    }

    #[test]
    fn what_is_empty_is_left_out_of_what_is_new() {
        let key = resource("api-keys").unwrap();
        let form =
            entered("name=crm&preset=read_only&allow=127.0.0.1%0D%0A+10.0.0.0%2F8+%0D%0A&rate_per_minute=");
        let body = json!({"name": "crm", "preset": "read_only", "allow": ["127.0.0.1", "10.0.0.0/8"]});
        assert_eq!(key.created(&form), body);
    }

    #[test]
    fn only_what_differs_is_changed() {
        let user = resource("users").unwrap();
        let showed =
            "was.email=a%40b.test&was.name=Ada&was.role=agent&was.team_id=t&was.password=&was.disabled=";
        let changed = |form: &str| user.changed(&entered(&format!("{showed}&{form}")));
        assert_eq!(changed("email=a%40b.test&name=Ada&role=agent&team_id=t&password="), json!({}));
        let body = json!({"name": "", "password": " new secret ", "team_id": null, "disabled": true});
        let other = "email=a%40b.test&name=&role=agent&team_id=&password=+new+secret+&disabled=1";
        assert_eq!(changed(other), body);
        let hook = resource("webhooks").unwrap();
        let showed = "was.url=u&was.description=&was.events=call.*%0Aa&was.active=1";
        let same = entered(&format!("{showed}&url=u&description=&events=call.*%0D%0Aa&active=1"));
        assert_eq!(hook.changed(&same), json!({}));
    }

    /// Without an id, a number leads to the question for a room's number.
    #[test]
    fn a_destination_is_an_id_of_either_list_or_none() {
        let number = resource("numbers").unwrap();
        let body = json!({"number": "+442079460123", "destination": "conference"});
        let form = "number=%2B442079460123&destination=conference&destination_id=";
        assert_eq!(number.created(&entered(form)), body);
        let showed = "was.number=1&was.destination=extension&was.destination_id=e";
        let changed = |form: &str| number.changed(&entered(&format!("{showed}&number=1&destination={form}")));
        assert_eq!(changed("extension&destination_id=f"), json!({"destination_id": "f"}));
        let body = json!({"destination": "conference", "destination_id": null});
        assert_eq!(changed("conference&destination_id="), body);
    }

    #[test]
    fn what_is_no_number_is_sent_to_be_refused() {
        let room = resource("conference-rooms").unwrap();
        assert_eq!(room.created(&entered("max_members=x"))["max_members"], "x");
        assert_eq!(room.created(&entered("max_members=7"))["max_members"], 7);
    }
}
