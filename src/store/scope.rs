//! The condition that every statement over tenant data begins with.

use sidetone_model::access::Scope;

use crate::store::statement::Statement;

/// Adds ` WHERE …`: the rows inside `scope`, of a table with `organisation_id` and `team_id`. Further
/// conditions follow with ` AND …`.
pub(super) fn within(statement: &mut Statement, scope: Scope) {
    within_organisation(statement, scope);
    match scope {
        Scope::Everything | Scope::Organisation(_) => {}
        Scope::Team { team: Some(team), .. } => statement.bind(" AND team_id = ", team.to_string(), ""),
        // A row of no team is not the row of somebody who is in none.
        Scope::Team { team: None, .. } => statement.push(" AND FALSE"),
    }
}

/// Adds ` WHERE …`: the rows of the caller's organisation, of a table whose rows belong to no team.
pub(super) fn within_organisation(statement: &mut Statement, scope: Scope) {
    match scope.organisation() {
        Some(own) => statement.bind(" WHERE organisation_id = ", own.to_string(), ""),
        None => statement.push(" WHERE TRUE"),
    }
}
