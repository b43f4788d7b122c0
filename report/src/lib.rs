//! The report of a call as HTML: the verdict, who should act, the measurements of both legs over time, the rules that
//! nearly applied, and the far end's RTCP reports. `sidetone analyze --format html` and the panel use it.
//!
//! Pure: it reads the types of the model and writes text. A page ([`document`]) is one file without external requests.
//! All text of calls is escaped ([`Html`]), and the page's own policy forbids every script and style except its own
//! two. Code that only captures need, such as tables of calls, is in `capture/src/report`.

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
