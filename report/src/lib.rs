//! The report of a call as HTML: what the verdict is, who should act, what was measured on both legs over time, which
//! rules came near, and what the far end reports by RTCP. `sidetone analyze --format html` and the panel draw with it.
//!
//! Pure: it reads the types of the model and writes text. A page ([`document`]) is one file without external requests.
//! All text of calls is escaped ([`Html`]), and the page's own policy forbids every script and style except the two
//! that it contains. What is particular to captures, such as tables of calls, is in `capture/src/report`.

mod call;
mod compare;
pub mod document;
mod explain;
mod figures;
mod ladder;
mod leg;
mod markup;
mod number;
mod plots;
mod rules;
mod timeline;
mod verdict;

pub use call::{CallFile, file, legs, summary};
pub use explain::explanation;
pub use figures::figures;
pub use ladder::{Arrow, ladder};
pub use markup::{Html, shown};
pub use number::grouped;
pub use plots::{Limits, plots};
pub use rules::{any, remarks, rules};
pub use timeline::Course;
pub use verdict::{NO_VERDICT, chip, is_wrong, label};
