//! Answers queries about the registrations of phones.

use std::time::Duration;

use sidetone_model::access::Scope;
use sidetone_model::cursor::KeyValue;
use sidetone_model::directory::Extension;
use sidetone_model::page::{Order, Page};
use sidetone_model::quality::Hundredths;
use sidetone_model::registration::{RegistrationQuery, RegistrationRecord, RegistrationState};
use sidetone_model::time::Now;
use sidetone_sip::registrar::{Binding, BindingState, Registrar};

use crate::routing::Directory;
use crate::wall_time::wall;

/// Returns the registrations of `scope` that match `query`, by organisation, number and age.
///
/// *Bounds*: it looks up every extension of the organisation, or of all where the scope has more than one.
pub(super) fn list(
    now: Now,
    scope: Scope,
    query: &RegistrationQuery,
    directory: &Directory,
    registrar: &Registrar,
) -> Page<RegistrationRecord> {
    let is_asked = |extension: &&Extension| {
        scope.covers(extension.organisation_id, extension.team_id)
            && query.organisation_id.is_none_or(|asked| extension.organisation_id == asked)
            && query.extension_id.is_none_or(|asked| extension.id == asked)
    };
    let organisation = scope.organisation().or(query.organisation_id);
    let mut extensions: Vec<&Extension> = match (query.extension_id, organisation) {
        (Some(id), _) => directory.extension(id).into_iter().collect(),
        (None, Some(organisation)) => directory.lines_of(organisation).collect(),
        (None, None) => directory.extensions().iter().collect(),
    };
    extensions.retain(is_asked);
    extensions.sort_unstable_by_key(|extension| (&extension.number, extension.organisation_id, extension.id));
    let mut found: Vec<(&Extension, &Binding)> = Vec::new();
    for extension in extensions {
        let Some(aor) = directory.aor(extension) else { continue };
        let bindings = registrar.bindings_of(&aor).iter();
        let mut bindings: Vec<&Binding> =
            bindings.filter(|binding| binding.expires_at > now.instant).collect();
        bindings.sort_unstable_by_key(|binding| binding.id);
        found.extend(bindings.into_iter().map(|binding| (extension, binding)));
    }
    let page = Page::of_sorted(found, &query.window, Order::Ascending, |(extension, binding)| {
        let texts =
            [extension.number.clone(), extension.organisation_id.to_string(), extension.id.to_string()];
        let binding = KeyValue::Integer(i64::try_from(binding.id.0).unwrap_or(i64::MAX));
        texts.into_iter().map(KeyValue::Text).chain([binding]).collect()
    });
    page.map(|(extension, binding)| record(now, extension, binding))
}

fn record(now: Now, extension: &Extension, binding: &Binding) -> RegistrationRecord {
    RegistrationRecord {
        extension_id: extension.id,
        number: extension.number.clone(),
        name: extension.name.clone(),
        organisation_id: extension.organisation_id,
        team_id: extension.team_id,
        contact: binding.contact.to_string(),
        source: binding.flow.remote.to_string(),
        transport: binding.flow.protocol.as_str().to_ascii_lowercase(),
        user_agent: binding.user_agent.as_deref().map(str::to_owned),
        instance: binding.instance.clone(),
        state: state(binding.reachability.state),
        round_trip_ms: binding.reachability.round_trip.map(hundredths_of_ms),
        registered_at: wall(now, binding.refreshed_at),
        expires_at: wall(now, binding.expires_at),
    }
}

fn state(state: BindingState) -> RegistrationState {
    match state {
        BindingState::Reachable => RegistrationState::Reachable,
        BindingState::Unknown => RegistrationState::Unknown,
        BindingState::Unreachable => RegistrationState::Unreachable,
    }
}

fn hundredths_of_ms(duration: Duration) -> Hundredths {
    Hundredths(i64::try_from(duration.as_micros() / 10).unwrap_or(i64::MAX))
}
