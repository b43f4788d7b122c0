//! Users and API keys in apply files.

use sidetone_model::access::{Permission, Role};
use sidetone_model::directory::{Network, Secret};
use sidetone_model::key::{RATE_DEFAULT, RATE_MAX};
use sidetone_model::rules;
use sidetone_model::user::Email;
use toml::Table;

use crate::accounts::stored_key;
use crate::fields::{Fields, Problem, key_of};
use crate::provision::reading::{name_of, networks};

#[derive(Debug)]
pub(super) struct User {
    pub(super) path: String,
    pub(super) email: Email,
    pub(super) name: String,
    pub(super) password: Option<Secret>,
    pub(super) role: Role,
    pub(super) team: Option<String>,
}

#[derive(Debug)]
pub(super) struct ApiKey {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) key: Option<String>,
    pub(super) permissions: Vec<Permission>,
    pub(super) preset: Option<String>,
    pub(super) allow: Vec<Network>,
    pub(super) rate_per_minute: u32,
}

pub(super) fn user(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<User> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let email =
        fields.required_checked("email", |text| text.parse::<Email>().map_err(|error| error.to_string()));
    let name = fields.checked("name", rules::label);
    let of = email.as_ref().map(ToString::to_string).unwrap_or_default();
    let known = name.clone().unwrap_or_default();
    let password = fields.checked("password", |text| rules::user_password(text, &of, &known)).map(Secret);
    let role = fields.required_text("role").and_then(|text| {
        Role::from_name(&text).or_else(|| {
            let known = Role::ALL.map(|(_, name)| name).join(", ");
            fields.refuse("role", format!("\"{text}\" is none of {known}"))
        })
    });
    let team = fields.text("team").filter(|team| !team.is_empty());
    fields.finish();
    let email = email?;
    // The default name is the part of the address before the @.
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| email.local_part().to_owned());
    Some(User { path, email, name, password, role: role?, team })
}

pub(super) fn api_key(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<ApiKey> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let name = name_of(&mut fields);
    let key = fields.text("key").and_then(|text| {
        if stored_key(&text).is_some() {
            return Some(text);
        }
        // Even an invalid text may be a secret, so it is not repeated.
        fields.refuse(
            "key",
            "must be a prefix, an id of 8 to 32 and a secret of 32 to 128 letters and digits, with _ between them",
        )
    });
    let (permissions, preset) = permissions(&mut fields);
    let allow = fields.texts("allow");
    if allow.is_none() && !fields.problems().iter().any(|problem| problem.key == key_of(&path, "allow")) {
        fields.refuse::<()>("allow", "is missing, name the addresses that may use the key");
    }
    let allow = allow.map(|texts| {
        if texts.is_empty() || texts.len() > rules::NETWORKS_MAX {
            let most = rules::NETWORKS_MAX;
            fields.refuse::<()>("allow", format!("must name 1 to {most} addresses or networks"));
        }
        networks(&mut fields, "allow", &texts)
    });
    let rate = fields.integer("rate_per_minute", 1..=RATE_MAX.into()).unwrap_or(RATE_DEFAULT.into());
    fields.finish();
    Some(ApiKey {
        path,
        name: name?,
        key,
        permissions,
        preset,
        allow: allow?,
        rate_per_minute: u32::try_from(rate).unwrap_or(u32::MAX),
    })
}

/// The permissions of a key, and the preset that they are copied from.
fn permissions(fields: &mut Fields<'_>) -> (Vec<Permission>, Option<String>) {
    let names = fields.texts("permissions");
    let preset = fields.text("preset");
    let permissions = match (names, &preset) {
        (Some(_), Some(_)) => {
            fields.refuse::<()>("preset", "give permissions or a preset, not both");
            Vec::new()
        }
        (None, None) => {
            fields.refuse::<()>("permissions", "is missing, name permissions or a preset");
            Vec::new()
        }
        (None, Some(preset)) => Permission::preset(preset).unwrap_or_else(|| {
            let known = Permission::PRESETS.join(", ");
            fields.refuse::<()>("preset", format!("\"{preset}\" is none of {known}"));
            Vec::new()
        }),
        (Some(names), None) => {
            let mut permissions = Vec::with_capacity(names.len());
            for name in names {
                match Permission::from_name(&name) {
                    Some(permission) => permissions.push(permission),
                    None => {
                        let known: Vec<&str> = Permission::ALL.iter().map(|known| known.as_str()).collect();
                        let known = known.join(", ");
                        fields.refuse::<()>("permissions", format!("\"{name}\" is none of {known}"));
                    }
                }
            }
            permissions
        }
    };
    (permissions, preset)
}
