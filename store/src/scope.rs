//! The first condition of every statement over an organisation's data.

use sidetone_model::access::Scope;
use sidetone_model::ids::{OrganisationId, TeamId};

use crate::statement::Statement;

/// Adds ` WHERE …`: the rows inside `scope`, of a table with `organisation_id` and `team_id`. Further
/// conditions follow with ` AND …`.
pub(super) fn within(statement: &mut Statement, scope: Scope) {
    within_by(statement, scope, Some(" AND team_id = "));
}

/// Like [`within`], with `team` (` AND column = `) as the comparison for the team of a row; without it, no row has a
/// team.
pub(super) fn within_by(statement: &mut Statement, scope: Scope, team: Option<&'static str>) {
    within_organisation(statement, scope);
    match (scope, team) {
        (Scope::Everything | Scope::Organisation(_), _) => {}
        (Scope::Team { team: Some(own), .. }, Some(column)) => statement.bind(column, own.to_string(), ""),
        // A row without a team is not visible to a user who sees one team.
        (Scope::Team { .. }, _) => statement.push(" AND FALSE"),
    }
}

/// The organisation and the team that both the scope and a filter allow; `None` for each means any. `None` when they
/// contradict each other.
pub(super) fn narrowed(
    scope: Scope,
    organisation: Option<OrganisationId>,
    team: Option<TeamId>,
) -> Option<(Option<OrganisationId>, Option<TeamId>)> {
    let organisation = match (scope.organisation(), organisation) {
        (Some(own), Some(asked)) if own != asked => return None,
        (own, asked) => own.or(asked),
    };
    let own_team = match scope {
        Scope::Team { team, .. } => Some(team?),
        Scope::Everything | Scope::Organisation(_) => None,
    };
    match (own_team, team) {
        (Some(own), Some(asked)) if own != asked => None,
        (own, asked) => Some((organisation, own.or(asked))),
    }
}

/// Adds ` WHERE …`: all rows of the caller's organisation, whatever their team.
pub(super) fn within_organisation(statement: &mut Statement, scope: Scope) {
    of_organisation(statement, scope.organisation());
}

/// Adds ` WHERE …`: all rows of one organisation, or of all.
pub(super) fn of_organisation(statement: &mut Statement, organisation: Option<OrganisationId>) {
    match organisation {
        Some(own) => statement.bind(" WHERE organisation_id = ", own.to_string(), ""),
        None => statement.push(" WHERE TRUE"),
    }
}
