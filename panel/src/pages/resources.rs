//! Resources that can be created and changed in the panel: the fields of the API that a form has. The API validates
//! every value.

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::form::Fields;
use crate::me::Me;
use crate::show::{items, text};

/// A resource of the API with a form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    /// The path of its list, below `/api/v1` and below `/settings`.
    pub(crate) path: &'static str,
    /// The name of one item.
    pub(crate) one: &'static str,
    /// The permission to change it.
    pub(crate) permission: &'static str,
    pub(crate) fields: &'static [Field],
}

/// A field of a form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    /// The name in the API; `object.member` for a member of an object.
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) kind: Kind,
    /// Whether it is set on creation and never changed.
    pub(crate) is_fixed: bool,
}

/// How a field is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One of these values.
    Choice(&'static [&'static str]),
    /// Yes or no.
    Flag,
    /// An id from this list, or none; the text is the name of the field that is shown.
    Id(&'static str, &'static str),
    /// An id from one of these lists, or none: for each the path, the field that is shown, and the name of an
    /// entry.
    IdOf(&'static [(&'static str, &'static str, &'static str)]),
    /// Texts, one per line.
    Lines,
    Number,
    /// A number, or none.
    OptionalNumber,
    /// Numbers separated by commas.
    Numbers,
    /// A text, or none.
    OptionalText,
    /// A secret: never shown, and changed only when entered.
    Secret,
    Text,
}

const fn field(name: &'static str, label: &'static str, kind: Kind) -> Field {
    Field { name, label, kind, is_fixed: false }
}

/// A field that cannot be changed later.
const fn fixed(name: &'static str, label: &'static str, kind: Kind) -> Field {
    Field { name, label, kind, is_fixed: true }
}

const CURRENCY: Field = field("currency", "Currency, such as EUR", Kind::Text);
const FROM_TIME: Field =
    field("from_time", "Valid from, such as 2026-01-31T12:00:00Z (empty: always)", Kind::Text);
const INCREMENTS: Field =
    field("increments", "Increments in seconds: the first, and each next one, such as 60, 1", Kind::Numbers);
const PER_MINUTE: Field = field("per_minute", "For a minute", Kind::Text);
const PREFIX: Field = field("prefix", "Prefix of the numbers, such as +44", Kind::Text);
const TEAM: Field = field("team_id", "Team", Kind::Id("/teams", "name"));
const TO_TIME: Field = field("to_time", "Valid until (empty: no end)", Kind::OptionalText);

/// The resources, by path.
pub(crate) const RESOURCES: [Resource; 13] = [
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
        path: "ai-prices",
        one: "AI price",
        permission: "rates:write",
        fields: &[
            field("provider", "Provider", Kind::Text),
            field("model", "Model, or a prefix and *", Kind::Text),
            field(
                "kind",
                "Kind: cost of the operator, or sold to a customer",
                Kind::Choice(&["cost", "sell"]),
            ),
            field("organisation_id", "Customer (none: all)", Kind::Id("/organisations", "name")),
            field("text_input_per_million", "A million input tokens of text", Kind::Text),
            field(
                "audio_input_per_million",
                "A million input tokens of audio (empty: as text)",
                Kind::OptionalText,
            ),
            field("output_per_million", "A million output tokens", Kind::Text),
            CURRENCY,
            FROM_TIME,
            TO_TIME,
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
        path: "cost-rates",
        one: "carrier price",
        permission: "rates:write",
        fields: &[
            fixed("trunk_id", "Carrier", Kind::Id("/trunks", "name")),
            PREFIX,
            PER_MINUTE,
            CURRENCY,
            INCREMENTS,
            FROM_TIME,
            TO_TIME,
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
            field("video", "Video", Kind::Choice(&["off", "pass"])),
            PERSONAL[0],
            PERSONAL[1],
            PERSONAL[2],
            PERSONAL[3],
            PERSONAL[4],
            PERSONAL[5],
        ],
    },
    Resource {
        path: "fx-rates",
        one: "exchange rate",
        permission: "rates:write",
        fields: &[
            field("from", "From, such as USD", Kind::Text),
            field("to", "To, such as EUR", Kind::Text),
            field("rate", "One unit of the first in the second", Kind::Text),
            FROM_TIME,
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
        path: "organisations",
        one: "organisation",
        permission: "organisations:write",
        fields: &[
            field("name", "Name", Kind::Text),
            field("sip_domain", "SIP domain", Kind::Text),
            CURRENCY,
            field("credit", "Credit (empty: no limit)", Kind::OptionalText),
            field("country_code", "Country code, such as 44 (empty: none)", Kind::Text),
            field("national_prefix", "Prefix of national numbers, such as 0", Kind::Text),
            field("international_prefix", "Prefix of international numbers, such as 00", Kind::Text),
            field("max_outbound_calls", "Outbound calls at once (empty: no limit)", Kind::OptionalNumber),
            field("max_call_seconds", "Longest call in seconds (empty: as the node)", Kind::OptionalNumber),
            field("recording_retention_days", "Days that recordings are kept (0: no limit)", Kind::Number),
            field("language", "Language of prompts", Kind::Choice(&["en", "de"])),
            field("star_codes", "Phones may dial star codes", Kind::Flag),
            field("call_info_url", "URL that is asked for a note on each call (empty: none)", Kind::Text),
            field("call_info_secret", "Secret of that URL (empty: unchanged)", Kind::Secret),
            field("callback_secret", "Secret of callbacks (empty: unchanged)", Kind::Secret),
        ],
    },
    Resource {
        path: "sell-rates",
        one: "price",
        permission: "rates:write",
        fields: &[
            fixed("organisation_id", "Customer", Kind::Id("/organisations", "name")),
            PREFIX,
            PER_MINUTE,
            CURRENCY,
            INCREMENTS,
            FROM_TIME,
            TO_TIME,
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

/// The settings that users change on their own extension.
pub(crate) const OWN: Resource =
    Resource { path: "extensions", one: "own extension", permission: "directory:read", fields: &PERSONAL };

/// The fields of an extension that its own user may change.
const PERSONAL: [Field; 6] = [
    field("do_not_disturb", "Do not disturb", Kind::Flag),
    field("forwarding.always", "Forward every call to", Kind::OptionalText),
    field("forwarding.busy", "When busy, forward to", Kind::OptionalText),
    field("forwarding.no_answer", "Without an answer, forward to", Kind::OptionalText),
    field("forwarding.no_answer_seconds", "Seconds that phones ring before that", Kind::Number),
    field("forwarding.unregistered", "Without a registered phone, forward to", Kind::OptionalText),
];

/// The resource at that path.
pub(crate) fn resource(path: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|resource| resource.path == path)
}

impl Field {
    /// The value of a stored resource as the form shows it; secrets are not shown.
    pub(crate) fn shown(&self, item: &Value) -> String {
        let value = self.name.split('.').fold(item, |object, member| &object[member]);
        match (value, self.kind) {
            (_, Kind::Secret) => String::new(),
            (Value::Bool(flag), _) => if *flag { "1" } else { "" }.to_owned(),
            (Value::Array(numbers), Kind::Numbers) => {
                numbers.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
            }
            (Value::Array(lines), _) => lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
            (Value::Number(number), _) => number.to_string(),
            (value, _) => value.as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Converts the entered text to a value for the API; `None` leaves the field out.
    fn sent(&self, entered: &str, is_new: bool) -> Option<Value> {
        // A password is stored as it is entered; the login does not trim it.
        let entered = if self.kind == Kind::Secret { entered } else { entered.trim() };
        match self.kind {
            Kind::Flag => Some(json!(!entered.is_empty())),
            Kind::Lines => Some(json!(
                entered.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>()
            )),
            _ if entered.is_empty() && (is_new || matches!(self.kind, Kind::Secret | Kind::Number)) => None,
            Kind::Id(..) | Kind::IdOf(_) | Kind::OptionalNumber | Kind::OptionalText
                if entered.is_empty() =>
            {
                Some(Value::Null)
            }
            Kind::Number | Kind::OptionalNumber => Some(number(entered)),
            Kind::Numbers => {
                let parts = entered.split([',', ' ']).filter(|part| !part.is_empty());
                Some(parts.map(number).collect())
            }
            Kind::Choice(_)
            | Kind::Id(..)
            | Kind::IdOf(_)
            | Kind::OptionalText
            | Kind::Secret
            | Kind::Text => Some(json!(entered)),
        }
    }
}

/// Converts a number for the API. The API refuses a text that is not a number.
fn number(entered: &str) -> Value {
    entered.parse::<i64>().map_or_else(|_| json!(entered), |number| json!(number))
}

/// An object with these fields and members of objects.
fn object(values: impl Iterator<Item = (&'static str, Value)>) -> Value {
    let mut object = json!({});
    for (name, value) in values {
        match name.split_once('.') {
            Some((inner, member)) => object[inner][member] = value,
            None => object[name] = value,
        }
    }
    object
}

impl Resource {
    /// The fields of the form for a new item, or for an existing one.
    pub(crate) fn fields(&self, is_new: bool) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().filter(move |field| is_new || !field.is_fixed)
    }

    /// Whether the user may change it. Only operators change prices, although users of organisations may hold the
    /// permission.
    pub(crate) fn is_changed_by(&self, me: &Me) -> bool {
        me.may(self.permission) && (self.permission != "rates:write" || me.is_operator)
    }

    /// Whether the user may create and delete it. Organisations are created and deleted by operators only.
    pub(crate) fn is_managed_by(&self, me: &Me) -> bool {
        self.is_changed_by(me) && (self.permission != "organisations:write" || me.is_operator)
    }

    /// Whether the form shows a field of the API.
    pub(crate) fn shows(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name.split('.').next() == Some(name))
    }

    /// The failure with the names of the form's fields: presets stand for the permissions of a key.
    pub(crate) fn failed(&self, mut failure: Failure) -> Failure {
        for (field, _) in &mut failure.fields {
            if field == "permissions" && self.shows("preset") {
                "preset".clone_into(field);
            }
        }
        failure
    }

    /// The body that creates an item from the entered values.
    pub(crate) fn created(&self, entered: &Fields) -> Value {
        let value = |field: &'static Field| Some((field.name, field.sent(entered.get(field.name), true)?));
        object(self.fields(true).filter_map(value))
    }

    /// The body that changes the shown values to the entered ones: only fields that differ.
    pub(crate) fn changed(&self, entered: &Fields) -> Value {
        let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
        let differs =
            |field: &&'static Field| lines(entered.get(field.name)) != lines(entered.get(&was(field.name)));
        let value = |field: &'static Field| Some((field.name, field.sent(entered.get(field.name), false)?));
        object(self.fields(false).filter(differs).filter_map(value))
    }
}

/// The name of the hidden field that contains the values the form showed.
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

    /// Without an id, a number leads to the prompt for a room's number.
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
    fn members_of_an_object_are_changed_alone() {
        let extension = resource("extensions").unwrap();
        let item = json!({"forwarding": {"always": null, "busy": "1002", "no_answer_seconds": 20}});
        let shown = |name: &str| {
            extension.fields(false).find(|field| field.name == name).map(|field| field.shown(&item))
        };
        assert_eq!(shown("forwarding.busy").as_deref(), Some("1002"));
        assert_eq!(shown("forwarding.always").as_deref(), Some(""));
        let form = "was.forwarding.busy=1002&was.forwarding.always=&was.forwarding.no_answer_seconds=20\
                    &forwarding.busy=&forwarding.always=1003&forwarding.no_answer_seconds=20";
        let body = json!({"forwarding": {"busy": null, "always": "1003"}});
        assert_eq!(extension.changed(&entered(form)), body);
    }

    #[test]
    fn a_price_has_increments_and_keeps_its_customer() {
        let rate = resource("sell-rates").unwrap();
        let form = "organisation_id=o&prefix=%2B44&per_minute=0.5&currency=EUR&increments=60%2C+1&from_time=&to_time=";
        let body = json!({
            "organisation_id": "o", "prefix": "+44", "per_minute": "0.5", "currency": "EUR", "increments": [60, 1]
        });
        assert_eq!(rate.created(&entered(form)), body);
        let increments = rate.fields(false).find(|field| field.name == "increments").unwrap();
        assert_eq!(increments.shown(&body), "60, 1");
        let changed = "was.organisation_id=o&organisation_id=p&was.increments=60, 1&increments=1 x\
                       &was.to_time=2026-01-01T00:00:00Z&to_time=";
        let body = json!({"increments": [1, "x"], "to_time": null});
        assert_eq!(rate.changed(&entered(&changed.replace(' ', "+"))), body);
    }

    #[test]
    fn what_is_no_number_is_sent_to_be_refused() {
        let room = resource("conference-rooms").unwrap();
        assert_eq!(room.created(&entered("max_members=x"))["max_members"], "x");
        assert_eq!(room.created(&entered("max_members=7"))["max_members"], 7);
    }
}
