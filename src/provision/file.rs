//! Reads an apply file into declarations, with every error reported by its key.

use std::collections::HashSet;

use sidetone_model::call_info::CallInfoTarget;
use sidetone_model::directory::{Numbering, Secret, Srtp, StrictSource, Video};
use sidetone_model::extension::{REGISTRATIONS, REGISTRATIONS_DEFAULT};
use sidetone_model::forwarding::{
    Forwarding, NO_ANSWER_SECONDS_DEFAULT, NO_ANSWER_SECONDS_MAX, NO_ANSWER_SECONDS_MIN, forward_target,
};
use sidetone_model::language::Language;
use sidetone_model::money::{Amount, Currency};
use sidetone_model::ports::OutgoingUrls;
use sidetone_model::rules;
use toml::Table;

use crate::fields::{Fields, Problem, key_of};
use crate::provision::ai_prices::{DeclaredAiPrice, ai_price};
use crate::provision::call_info::{declared_call_info, declared_callback_secret};
use crate::provision::rates::{Rates, cost_rate, fx_rate, sell_rate};
use crate::provision::reading::{max_call_seconds, name_of};
use crate::provision::room_pins::DefaultPin;
use crate::provision::rooms::{Room, Target, room, target};
use crate::provision::trunks::{Trunk, numbering, trunk};
use crate::provision::users::{ApiKey, User, api_key, user};

/// The validated declarations of one apply file.
#[derive(Debug, Default)]
pub struct Declaration {
    pub(super) organisations: Vec<Organisation>,
    pub(super) trunks: Vec<Trunk>,
    pub(super) rates: Rates,
    pub(super) ai_prices: Vec<DeclaredAiPrice>,
    pub(super) default_pin: DefaultPin,
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
    pub(super) max_call_seconds: Option<u32>,
    /// `None` keeps the stored value.
    pub(super) call_info: Option<Option<CallInfoTarget>>,
    /// `None` keeps the stored value.
    pub(super) callback_secret: Option<Secret>,
    /// `None` keeps the stored value.
    pub(super) recording_retention_days: Option<u32>,
    /// `None` keeps the stored value.
    pub(super) language: Option<Language>,
    pub(super) star_codes: Option<bool>,
    pub(super) teams: Vec<String>,
    pub(super) extensions: Vec<Extension>,
    pub(super) users: Vec<User>,
    pub(super) api_keys: Vec<ApiKey>,
    pub(super) numbers: Vec<Number>,
    pub(super) rooms: Vec<Room>,
}

#[derive(Debug)]
pub(super) struct Extension {
    pub(super) path: String,
    pub(super) number: String,
    pub(super) name: String,
    pub(super) password: Option<String>,
    pub(super) team: Option<String>,
    pub(super) codecs: Vec<String>,
    pub(super) strict_source: Option<StrictSource>,
    pub(super) srtp: Srtp,
    pub(super) video: Video,
    /// `None` keeps the stored value.
    pub(super) forwarding: Option<Forwarding>,
    /// `None` keeps the stored value.
    pub(super) do_not_disturb: Option<bool>,
    /// `None` keeps the stored value.
    pub(super) language: Option<Language>,
    pub(super) max_registrations: u32,
    pub(super) notify_message_waiting: bool,
}

#[derive(Debug)]
pub(super) struct Number {
    pub(super) path: String,
    pub(super) number: String,
    pub(super) target: Target,
}

impl Declaration {
    /// Reads and validates the tables of one file.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn parse(table: Table) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut root = Fields::new("", table, &mut problems);
        let organisations = root.tables("organisations");
        let trunks = root.tables("trunks");
        let (sell, cost, fx) =
            (root.tables("sell_rates"), root.tables("cost_rates"), root.tables("fx_rates"));
        let ai_prices = root.tables("ai_prices");
        root.finish();
        let declaration = Self {
            organisations: each(organisations, &mut problems, organisation),
            trunks: each(trunks, &mut problems, trunk),
            rates: Rates {
                sell: each(sell, &mut problems, sell_rate),
                cost: each(cost, &mut problems, cost_rate),
                fx: each(fx, &mut problems, fx_rate),
            },
            ai_prices: each(ai_prices, &mut problems, ai_price),
            default_pin: DefaultPin::default(),
        };
        let named = declaration.organisations.iter().map(|o| (o.path.as_str(), "name", o.name.as_str()));
        refuse_twice(named, &mut problems);
        let named = declaration.trunks.iter().map(|t| (t.path.as_str(), "name", t.name.as_str()));
        refuse_twice(named, &mut problems);
        let keys = declaration.rates.keys();
        refuse_twice(keys.iter().map(|(path, key, value)| (*path, *key, value.as_str())), &mut problems);
        let prices: Vec<(&str, String)> =
            declaration.ai_prices.iter().map(|price| (price.path.as_str(), price.key())).collect();
        refuse_twice(prices.iter().map(|(path, key)| (*path, "model", key.as_str())), &mut problems);
        if problems.is_empty() { Ok(declaration) } else { Err(problems) }
    }
}

impl Declaration {
    /// Returns the declaration with the default PIN of new rooms.
    #[must_use]
    pub fn with_default_pin(self, default_pin: DefaultPin) -> Self {
        Self { default_pin, ..self }
    }

    /// Returns the problems of URLs that this node's rules refuse.
    pub fn refused_urls(&self, urls: &dyn OutgoingUrls) -> Vec<Problem> {
        let targets = self.organisations.iter().filter_map(|declared| {
            declared.call_info.as_ref()?.as_ref().map(|target| (&declared.path, &target.url))
        });
        targets
            .filter_map(|(path, url)| {
                let message = urls.check(url).err()?;
                Some(Problem::new(key_of(path, "call_info_url"), message))
            })
            .collect()
    }
}

/// Reads every valid table; the errors of the others are added to the problems.
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
    let sip_domain = fields.required_checked("sip_domain", rules::sip_domain);
    let currency = if fields.has("currency") {
        fields.checked("currency", rules::currency)
    } else {
        rules::currency(rules::CURRENCY_DEFAULT).ok()
    };
    let credit = fields.checked("credit", rules::credit);
    let numbering = numbering(&mut fields);
    let max_outbound_calls = fields.integer("max_outbound_calls", 0..=i64::from(rules::OUTBOUND_CALLS_MAX));
    let max_call_seconds = max_call_seconds(&mut fields);
    let call_info = declared_call_info(&mut fields);
    let callback_secret = declared_callback_secret(&mut fields);
    let retention = fields.integer("recording_retention_days", 0..=i64::from(rules::RETENTION_DAYS_MAX));
    let language = fields.checked("language", rules::language);
    let star_codes = fields.boolean("star_codes");
    let teams = fields.tables("teams");
    let extensions = fields.tables("extensions");
    let users = fields.tables("users");
    let api_keys = fields.tables("api_keys");
    let numbers = fields.tables("numbers");
    let rooms = fields.tables("rooms");
    fields.finish();
    let teams: Vec<(String, String)> = each(teams, problems, team);
    refuse_twice(teams.iter().map(|(path, name)| (path.as_str(), "name", name.as_str())), problems);
    let extensions = each(extensions, problems, extension);
    refuse_twice(extensions.iter().map(|e| (e.path.as_str(), "number", e.number.as_str())), problems);
    let users = each(users, problems, user);
    refuse_twice(users.iter().map(|u| (u.path.as_str(), "email", u.email.as_str())), problems);
    let api_keys = each(api_keys, problems, api_key);
    refuse_twice(api_keys.iter().map(|k| (k.path.as_str(), "name", k.name.as_str())), problems);
    let numbers = each(numbers, problems, number);
    refuse_twice(numbers.iter().map(|n| (n.path.as_str(), "number", n.number.as_str())), problems);
    let rooms = each(rooms, problems, room);
    refuse_twice(rooms.iter().map(|r| (r.path.as_str(), "number", r.number.as_str())), problems);
    Some(Organisation {
        path,
        name: name?,
        sip_domain: sip_domain?,
        currency: currency?,
        credit,
        numbering,
        max_outbound_calls: max_outbound_calls.and_then(|limit| u32::try_from(limit).ok()),
        max_call_seconds,
        call_info,
        callback_secret,
        recording_retention_days: retention.and_then(|days| u32::try_from(days).ok()),
        language,
        star_codes,
        teams: teams.into_iter().map(|(_, name)| name).collect(),
        extensions,
        users,
        api_keys,
        numbers,
        rooms,
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
    let number = fields.required_checked("number", rules::extension_number);
    let name = fields.checked("name", rules::label).unwrap_or_default();
    let of = number.clone().unwrap_or_default();
    let password = fields.checked("password", |text| rules::phone_password(text, &of, &name));
    let team = fields.text("team").filter(|team| !team.is_empty());
    let codecs = codecs(&mut fields);
    let strict_source = fields.checked("strict_source", rules::strict_source);
    let srtp = fields.checked("srtp", rules::srtp).unwrap_or(Srtp::Off);
    let video = fields.checked("video", rules::video).unwrap_or(Video::Off);
    let do_not_disturb = fields.boolean("do_not_disturb");
    let language = fields.checked("language", rules::language);
    let notify_message_waiting = fields.boolean("notify_message_waiting").unwrap_or(false);
    let max_registrations = fields.integer("max_registrations", REGISTRATIONS);
    let max_registrations = max_registrations.and_then(|count| u32::try_from(count).ok());
    let forwarding = fields.table("forwarding");
    fields.finish();
    let forwarding = forwarding.map(|(path, table)| forwarding_of(path, table, problems));
    Some(Extension {
        path,
        number: number?,
        name,
        password,
        team,
        codecs,
        strict_source,
        srtp,
        video,
        forwarding,
        do_not_disturb,
        language,
        max_registrations: max_registrations.unwrap_or(REGISTRATIONS_DEFAULT),
        notify_message_waiting,
    })
}

fn forwarding_of(path: String, table: Table, problems: &mut Vec<Problem>) -> Forwarding {
    let mut fields = Fields::new(path, table, problems);
    let always = fields.checked("always", forward_target);
    let busy = fields.checked("busy", forward_target);
    let no_answer = fields.checked("no_answer", forward_target);
    let range = i64::from(NO_ANSWER_SECONDS_MIN)..=i64::from(NO_ANSWER_SECONDS_MAX);
    let seconds = fields.integer("no_answer_seconds", range).and_then(|seconds| u16::try_from(seconds).ok());
    let unregistered = fields.checked("unregistered", forward_target);
    fields.finish();
    let no_answer_seconds = seconds.unwrap_or(NO_ANSWER_SECONDS_DEFAULT);
    Forwarding { always, busy, no_answer, no_answer_seconds, unregistered }
}

fn codecs(fields: &mut Fields<'_>) -> Vec<String> {
    let names = fields.texts("codecs").unwrap_or_default();
    rules::codecs(names.iter().map(String::as_str)).unwrap_or_else(|wrong| {
        for message in wrong {
            fields.refuse::<()>("codecs", message);
        }
        Vec::new()
    })
}

fn number(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<Number> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let number = fields.required_checked("number", rules::e164);
    let destination = fields.table("destination");
    if destination.is_none() && !fields.problems().iter().any(|p| p.key == key_of(&path, "destination")) {
        fields.refuse::<()>("destination", "is missing, such as { extension = \"1001\" }");
    }
    fields.finish();
    let (path_inside, table) = destination?;
    let target = target(path_inside, table, problems);
    Some(Number { path, number: number?, target: target? })
}

fn refuse_twice<'a>(
    items: impl Iterator<Item = (&'a str, &'static str, &'a str)>,
    problems: &mut Vec<Problem>,
) {
    let mut seen = HashSet::new();
    for (path, key, value) in items {
        if !seen.insert(value) {
            problems.push(Problem::new(key_of(path, key), format!("\"{value}\" is declared twice")));
        }
    }
}
