//! Reading an apply file into what it declares, with every mistake named by its key.

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;
use sidetone_model::access::Permission;
use sidetone_model::directory::{Network, Numbering};
use sidetone_model::money::{Amount, Currency};
use toml::Table;

use crate::fields::{Fields, Problem};
use crate::provision::key_text;
use crate::provision::outside::{Trunk, numbering, trunk};

/// What one apply file declares, validated.
#[derive(Debug, Default)]
pub struct Declaration {
    pub(super) organisations: Vec<Organisation>,
    pub(super) trunks: Vec<Trunk>,
}

#[derive(Debug)]
pub(super) struct Organisation {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) sip_domain: String,
    pub(super) currency: Currency,
    pub(super) credit: Option<Amount>,
    pub(super) numbering: Numbering,
    pub(super) max_outbound_calls: Option<u32>,
    pub(super) teams: Vec<String>,
    pub(super) extensions: Vec<Extension>,
    pub(super) api_keys: Vec<ApiKey>,
    pub(super) numbers: Vec<Number>,
}

#[derive(Debug)]
pub(super) struct Extension {
    pub(super) path: String,
    pub(super) number: String,
    pub(super) name: String,
    pub(super) password: Option<String>,
    pub(super) team: Option<String>,
    pub(super) codecs: Vec<String>,
}

#[derive(Debug)]
pub(super) struct ApiKey {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) key: Option<String>,
    pub(super) permissions: Vec<Permission>,
    pub(super) allow: Vec<Network>,
    pub(super) rate_per_minute: u32,
}

#[derive(Debug)]
pub(super) struct Number {
    pub(super) path: String,
    pub(super) number: String,
    pub(super) extension: String,
}

impl Declaration {
    /// Reads and validates the tables of one file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(table: Table) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut root = Fields::new("", table, &mut problems);
        let organisations = root.tables("organisations");
        let trunks = root.tables("trunks");
        refuse_later(&mut root, &["sell_rates", "cost_rates", "fx_rates"]);
        root.finish();
        let declaration = Self {
            organisations: each(organisations, &mut problems, organisation),
            trunks: each(trunks, &mut problems, trunk),
        };
        let named = declaration.organisations.iter().map(|o| (o.path.as_str(), "name", o.name.as_str()));
        refuse_twice(named, &mut problems);
        let named = declaration.trunks.iter().map(|t| (t.path.as_str(), "name", t.name.as_str()));
        refuse_twice(named, &mut problems);
        if problems.is_empty() { Ok(declaration) } else { Err(problems) }
    }
}

/// Reads every table that can be read; what is wrong with the others is among the problems.
fn each<T>(
    tables: Vec<(String, Table)>,
    problems: &mut Vec<Problem>,
    read: fn(String, Table, &mut Vec<Problem>) -> Option<T>,
) -> Vec<T> {
    tables.into_iter().filter_map(|(path, table)| read(path, table, problems)).collect()
}

fn organisation(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<Organisation> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let name = name_of(&mut fields);
    let sip_domain = fields.required_text("sip_domain").map(|domain| domain.to_ascii_lowercase());
    let sip_domain = sip_domain.and_then(|domain| {
        if is_domain(&domain) {
            Some(domain)
        } else {
            fields.refuse("sip_domain", "must be a host name such as acme.test")
        }
    });
    let currency = fields.text("currency").unwrap_or_else(|| CURRENCY.to_owned());
    let currency = currency
        .parse()
        .ok()
        .or_else(|| fields.refuse("currency", "must be the three letters of a currency, such as EUR"));
    let credit = fields.text("credit").and_then(|text| match text.parse::<Amount>() {
        Ok(amount) if amount >= Amount::ZERO => Some(amount),
        _ => fields.refuse("credit", "must be a decimal in quotes that is not negative, such as \"25.00\""),
    });
    let numbering = numbering(&mut fields);
    let max_outbound_calls = fields.integer("max_outbound_calls", 0..=CALLS_MAX);
    refuse_later(&mut fields, &["call_info_url", "call_info_secret", "users", "rooms"]);
    let teams = fields.tables("teams");
    let extensions = fields.tables("extensions");
    let api_keys = fields.tables("api_keys");
    let numbers = fields.tables("numbers");
    fields.finish();
    let teams: Vec<(String, String)> = each(teams, problems, team);
    refuse_twice(teams.iter().map(|(path, name)| (path.as_str(), "name", name.as_str())), problems);
    let extensions = each(extensions, problems, extension);
    refuse_twice(extensions.iter().map(|e| (e.path.as_str(), "number", e.number.as_str())), problems);
    let api_keys = each(api_keys, problems, api_key);
    refuse_twice(api_keys.iter().map(|k| (k.path.as_str(), "name", k.name.as_str())), problems);
    let numbers = each(numbers, problems, number);
    refuse_twice(numbers.iter().map(|n| (n.path.as_str(), "number", n.number.as_str())), problems);
    Some(Organisation {
        path,
        name: name?,
        sip_domain: sip_domain?,
        currency: currency?,
        credit,
        numbering,
        max_outbound_calls: max_outbound_calls.and_then(|limit| u32::try_from(limit).ok()),
        teams: teams.into_iter().map(|(_, name)| name).collect(),
        extensions,
        api_keys,
        numbers,
    })
}

fn team(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<(String, String)> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let name = name_of(&mut fields);
    fields.finish();
    Some((path, name?))
}

fn extension(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<Extension> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let number = fields.required_text("number").and_then(|number| {
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        if digits && number.len() <= EXTENSION_LEN_MAX {
            Some(number)
        } else {
            fields.refuse("number", format!("must be 1 to {EXTENSION_LEN_MAX} digits"))
        }
    });
    let name = fields.text("name").unwrap_or_default();
    if name.chars().count() > NAME_LEN_MAX || name.chars().any(char::is_control) {
        fields.refuse::<()>("name", format!("must be at most {NAME_LEN_MAX} characters on one line"));
    }
    let password = fields.text("password").and_then(|password| {
        let fits =
            (1..=PASSWORD_LEN_MAX).contains(&password.len()) && !password.chars().any(char::is_control);
        if fits {
            Some(password)
        } else {
            fields.refuse("password", format!("must be 1 to {PASSWORD_LEN_MAX} bytes on one line"))
        }
    });
    let team = fields.text("team").filter(|team| !team.is_empty());
    let codecs = codecs(&mut fields);
    fields.finish();
    Some(Extension { path, number: number?, name, password, team, codecs })
}

fn codecs(fields: &mut Fields<'_>) -> Vec<String> {
    let mut codecs: Vec<String> = Vec::new();
    for name in fields.texts("codecs").unwrap_or_default() {
        match CODECS.iter().find(|known| known.eq_ignore_ascii_case(&name)) {
            Some(known) if codecs.iter().any(|codec| codec == known) => {
                fields.refuse::<()>("codecs", format!("{known} is named twice"));
            }
            Some(known) => codecs.push((*known).to_owned()),
            None => {
                fields.refuse::<()>("codecs", format!("\"{name}\" is none of {}", CODECS.join(", ")));
            }
        }
    }
    codecs
}

fn api_key(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<ApiKey> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let name = name_of(&mut fields);
    let key = fields.text("key").and_then(|text| {
        if key_text::stored(&text).is_some() {
            return Some(text);
        }
        // The text is a secret even when it is wrong: it is not repeated.
        fields.refuse(
            "key",
            "must be a prefix, an id of 8 to 32 and a secret of 32 to 128 letters and digits, with _ between them",
        )
    });
    let permissions = permissions(&mut fields);
    let allow = fields.texts("allow");
    if allow.is_none() && !fields.problems().iter().any(|problem| problem.key == format!("{path}.allow")) {
        fields.refuse::<()>("allow", "is missing, name the addresses that may use the key");
    }
    let allow = allow.map(|texts| {
        if texts.is_empty() || texts.len() > ALLOW_LEN_MAX {
            fields.refuse::<()>("allow", format!("must name 1 to {ALLOW_LEN_MAX} addresses or networks"));
        }
        networks(&mut fields, "allow", &texts)
    });
    let rate = fields.integer("rate_per_minute", 1..=RATE_MAX).unwrap_or(RATE_DEFAULT);
    fields.finish();
    Some(ApiKey {
        path,
        name: name?,
        key,
        permissions,
        allow: allow?,
        rate_per_minute: u32::try_from(rate).unwrap_or(u32::MAX),
    })
}

fn permissions(fields: &mut Fields<'_>) -> Vec<Permission> {
    let names = fields.texts("permissions");
    let preset = fields.text("preset");
    match (names, preset) {
        (Some(_), Some(_)) => {
            fields.refuse::<()>("preset", "give permissions or a preset, not both");
            Vec::new()
        }
        (None, None) => {
            fields.refuse::<()>("permissions", "is missing, name permissions or a preset");
            Vec::new()
        }
        (None, Some(preset)) => Permission::preset(&preset).unwrap_or_else(|| {
            fields.refuse::<()>("preset", format!("\"{preset}\" is not a preset of this version"));
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
    }
}

fn number(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<Number> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let number = fields.required_text("number").and_then(|number| {
        if is_e164(&number) {
            Some(number)
        } else {
            fields.refuse("number", "must be written like +442071230000")
        }
    });
    let destination = fields.table("destination");
    if destination.is_none() && !fields.problems().iter().any(|p| p.key == format!("{path}.destination")) {
        fields.refuse::<()>("destination", "is missing, such as { extension = \"1001\" }");
    }
    fields.finish();
    let (path_inside, table) = destination?;
    let mut inside = Fields::new(path_inside, table, problems);
    let conference = inside.has("conference");
    refuse_later(&mut inside, &["conference"]);
    let extension = if conference { inside.text("extension") } else { inside.required_text("extension") };
    inside.finish();
    Some(Number { path, number: number?, extension: extension? })
}

/// Networks in canonical form: IPv4-mapped ones as IPv4, host bits zero; the whole Internet is none.
pub(super) fn networks(fields: &mut Fields<'_>, key: &'static str, texts: &[String]) -> Vec<Network> {
    let mut networks = Vec::with_capacity(texts.len());
    for text in texts {
        let parsed = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        match parsed.ok().and_then(canonical) {
            Some(network) if network.prefix_len == 0 => {
                fields.refuse::<()>(
                    key,
                    format!("\"{text}\" is the whole Internet, name the addresses that call"),
                );
            }
            Some(network) => networks.push(network),
            None => {
                fields.refuse::<()>(
                    key,
                    format!("\"{text}\" must be an address or a network, such as 192.0.2.0/24"),
                );
            }
        }
    }
    networks
}

fn canonical(network: IpNet) -> Option<Network> {
    let network = network.trunc();
    match (network.network(), network.network().to_canonical()) {
        (IpAddr::V6(_), mapped @ IpAddr::V4(_)) => {
            // ::ffff:192.0.2.0/120 is 192.0.2.0/24; a shorter prefix is no IPv4 network.
            Some(Network { address: mapped, prefix_len: network.prefix_len().checked_sub(96)? })
        }
        (address, _) => Some(Network { address, prefix_len: network.prefix_len() }),
    }
}

pub(super) fn name_of(fields: &mut Fields<'_>) -> Option<String> {
    let name = fields.required_text("name")?;
    if name.chars().count() > NAME_LEN_MAX || name.chars().any(char::is_control) {
        return fields.refuse("name", format!("must be at most {NAME_LEN_MAX} characters on one line"));
    }
    Some(name)
}

/// Keys of the contract whose feature this version does not have: silence would be a lie.
fn refuse_later(fields: &mut Fields<'_>, keys: &[&'static str]) {
    for key in keys {
        if fields.take(key).is_some() {
            fields.refuse::<()>(key, "is not supported by this version yet");
        }
    }
}

fn refuse_twice<'a>(
    items: impl Iterator<Item = (&'a str, &'static str, &'a str)>,
    problems: &mut Vec<Problem>,
) {
    let mut seen = HashSet::new();
    for (path, key, value) in items {
        if !seen.insert(value) {
            problems.push(Problem::new(format!("{path}.{key}"), format!("\"{value}\" is declared twice")));
        }
    }
}

fn is_domain(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

fn is_e164(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| {
        (2..=15).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0')
    })
}

pub(super) const ALLOW_LEN_MAX: usize = 64;
const CALLS_MAX: i64 = 1_000_000;
/// What the switch can carry from one phone to another.
const CODECS: [&str; 4] = ["G722", "PCMA", "PCMU", "opus"];
const CURRENCY: &str = "EUR";
const EXTENSION_LEN_MAX: usize = 15;
const NAME_LEN_MAX: usize = 100;
pub(super) const PASSWORD_LEN_MAX: usize = 128;
const RATE_DEFAULT: i64 = 600;
const RATE_MAX: i64 = 60_000;
