//! Trunks in apply files, and the numbering of an organisation.

use sidetone_model::directory::{Network, Numbering, Secret, Srtp, StrictSource, Video};
use sidetone_model::trunk_interop::{InboundNumbers, OutboundNumbers, TrunkInterop};
use sidetone_model::{rules, trunk_rules};
use toml::Table;

use crate::fields::{Fields, Problem, key_of};
use crate::provision::reading::{max_call_seconds, name_of, networks};

#[derive(Debug)]
pub(super) struct Trunk {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) organisation: Option<String>,
    pub(super) address: Option<String>,
    pub(super) accept_from: Vec<Network>,
    pub(super) priority: u16,
    pub(super) username: String,
    pub(super) password: Option<Secret>,
    pub(super) realm: String,
    pub(super) register: bool,
    pub(super) short_numbers: Vec<String>,
    pub(super) strict_source: Option<StrictSource>,
    pub(super) srtp: Srtp,
    pub(super) video: Video,
    pub(super) max_call_seconds: Option<u32>,
    pub(super) interop: TrunkInterop,
}

pub(super) fn trunk(path: String, table: Table, problems: &mut Vec<Problem>) -> Option<Trunk> {
    let mut fields = Fields::new(path.clone(), table, problems);
    let name = name_of(&mut fields);
    let organisation = fields.text("organisation").filter(|name| !name.is_empty());
    let address = fields.checked("address", |text| {
        if text.is_empty() { Ok(None) } else { rules::trunk_address(text).map(Some) }
    });
    let address = address.flatten();
    let texts = fields.texts("accept_from").unwrap_or_default();
    if texts.len() > rules::NETWORKS_MAX {
        fields.refuse::<()>("accept_from", format!("must name at most {} networks", rules::NETWORKS_MAX));
    }
    let accept_from = networks(&mut fields, "accept_from", &texts);
    let username = fields.checked("username", rules::trunk_identity).unwrap_or_default();
    let password = fields.checked("password", rules::trunk_password).map(Secret);
    let realm = fields.checked("realm", rules::trunk_identity).unwrap_or_default();
    let register = fields.boolean("register").unwrap_or_default();
    if register && (address.is_none() || username.is_empty()) {
        let wrong = fields.problems().iter().any(|problem| problem.key == key_of(&path, "address"));
        if !wrong {
            fields.refuse::<()>("register", "needs an address and a username to register with");
        }
    }
    let priority =
        fields.integer("priority", 0..=i64::from(u16::MAX)).unwrap_or(i64::from(rules::PRIORITY_DEFAULT));
    let short_numbers = short_numbers(&mut fields);
    let strict_source = fields.checked("strict_source", rules::strict_source);
    let srtp = fields.checked("srtp", rules::trunk_srtp).unwrap_or(Srtp::Off);
    let video = fields.checked("video", rules::video).unwrap_or(Video::Off);
    let max_call_seconds = max_call_seconds(&mut fields);
    let interop = interop(&mut fields, &path, address.as_deref());
    fields.finish();
    let priority = u16::try_from(priority).unwrap_or(u16::MAX);
    Some(Trunk {
        path,
        name: name?,
        organisation,
        address,
        accept_from,
        priority,
        username,
        password,
        realm,
        register,
        short_numbers,
        strict_source,
        srtp,
        video,
        max_call_seconds,
        interop,
    })
}

/// The settings for a carrier that deviates from the usual behaviour.
fn interop(fields: &mut Fields<'_>, path: &str, address: Option<&str>) -> TrunkInterop {
    let plain = TrunkInterop::default();
    let problems = fields.problems().len();
    let backups = (trunk_rules::BACKUP_ADDRESSES_MAX, "addresses");
    let codecs = (trunk_rules::CODECS_MAX, "codecs");
    let headers = (trunk_rules::HEADERS_MAX, "headers");
    let interop = TrunkInterop {
        backup_addresses: list(fields, "backup_addresses", backups, rules::trunk_address),
        outbound_proxy: fields
            .checked("outbound_proxy", |text| match text {
                "" => Ok(None),
                text => rules::trunk_address(text).map(Some),
            })
            .flatten(),
        from_domain: fields.checked("from_domain", trunk_rules::from_domain).unwrap_or_default(),
        country_code: fields.checked("country_code", rules::country_code).unwrap_or_default(),
        national_prefix: fields
            .checked("national_prefix", rules::national_prefix)
            .unwrap_or(plain.national_prefix),
        inbound_numbers: fields
            .checked("inbound_numbers", trunk_rules::inbound_numbers)
            .unwrap_or(InboundNumbers::International),
        outbound_numbers: fields
            .checked("outbound_numbers", trunk_rules::outbound_numbers)
            .unwrap_or(OutboundNumbers::E164),
        codecs: list(fields, "codecs", codecs, trunk_rules::codec_of_list()),
        headers: list(fields, "headers", headers, trunk_rules::header),
        progress_seconds: fields
            .integer("progress_seconds", trunk_rules::PROGRESS_SECONDS)
            .and_then(|seconds| u32::try_from(seconds).ok())
            .unwrap_or(plain.progress_seconds),
        qualify_seconds: fields
            .integer("qualify_seconds", trunk_rules::QUALIFY_SECONDS)
            .and_then(|seconds| u32::try_from(seconds).ok())
            .unwrap_or(plain.qualify_seconds),
        transfers: fields.boolean("transfers").unwrap_or_default(),
    };
    let wrong_address = fields.problems().iter().any(|problem| problem.key == key_of(path, "address"));
    if let Err(wrong) = interop.require_possible(address)
        && fields.problems().len() == problems
        && !wrong_address
    {
        let field = match wrong.field.as_str() {
            "backup_addresses" => "backup_addresses",
            "inbound_numbers" => "inbound_numbers",
            "outbound_numbers" => "outbound_numbers",
            "qualify_seconds" => "qualify_seconds",
            _ => "outbound_proxy",
        };
        fields.refuse::<()>(field, wrong.message);
    }
    interop
}

/// A list of at most `most` texts, each converted by `rule`.
fn list(
    fields: &mut Fields<'_>,
    key: &'static str,
    (most, what): (usize, &str),
    mut rule: impl FnMut(&str) -> Result<String, rules::Rule>,
) -> Vec<String> {
    let texts = fields.texts(key).unwrap_or_default();
    if texts.len() > most {
        fields.refuse::<()>(key, format!("must name at most {most} {what}"));
    }
    let mut read = Vec::new();
    for text in texts {
        match rule(&text) {
            Ok(text) => read.push(text),
            Err(message) => {
                fields.refuse::<()>(key, message);
            }
        }
    }
    read
}

/// The format in which an organisation writes phone numbers.
pub(super) fn numbering(fields: &mut Fields<'_>) -> Numbering {
    let plain = Numbering::default();
    let country_code = fields.checked("country_code", rules::country_code);
    Numbering {
        country_code: country_code.filter(|code| !code.is_empty()),
        national_prefix: fields
            .checked("national_prefix", rules::national_prefix)
            .unwrap_or(plain.national_prefix),
        international_prefix: fields
            .checked("international_prefix", rules::international_prefix)
            .unwrap_or(plain.international_prefix),
    }
}

fn short_numbers(fields: &mut Fields<'_>) -> Vec<String> {
    let numbers = fields.texts("short_numbers").unwrap_or_default();
    if numbers.len() > rules::SHORT_NUMBERS_MAX {
        let message = format!("must name at most {} numbers", rules::SHORT_NUMBERS_MAX);
        fields.refuse::<()>("short_numbers", message);
    }
    for number in &numbers {
        if let Err(message) = rules::short_number(number) {
            fields.refuse::<()>("short_numbers", message);
        }
    }
    numbers
}
