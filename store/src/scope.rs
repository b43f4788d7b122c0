//! The first condition of every statement over an organisation's data.

use sidetone_model::access::Scope;

use crate::statement::Statement;

/// Adds ` WHERE …`: the rows inside `scope`, of a table with `organisation_id` and `team_id`. Further
/// conditions follow with ` AND …`.
pub(super) fn within(statement: &mut Statement, scope: Scope) {
    within_by(statement, scope, Some(" AND team_id = "));
}

/// Like [`within`], with `team` (` AND column = `) as the comparison for the team of a row; without it no row
/// has a team.
pub(super) fn within_by(statement: &mut Statement, scope: Scope, team: Option<&'static str>) {
    within_organisation(statement, scope);
    match (scope, team) {
        (Scope::Everything | Scope::Organisation(_), _) => {}
        (Scope::Team { team: Some(own), .. }, Some(column)) => statement.bind(column, own.to_string(), ""),
        // A row without a team is not visible to a user who sees one team.
        (Scope::Team { .. }, _) => statement.push(" AND FALSE"),
    }
}

/// Adds ` WHERE …`: all rows of the caller's organisation, whatever their team.
pub(super) fn within_organisation(statement: &mut Statement, scope: Scope) {
    match scope.organisation() {
        Some(own) => statement.bind(" WHERE organisation_id = ", own.to_string(), ""),
        None => statement.push(" WHERE TRUE"),
    }
}
