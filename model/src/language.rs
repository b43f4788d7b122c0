//! The languages of the built-in prompts.

use crate::call::words;

words! {
    /// The language of the built-in prompts.
    #[derive(Default)]
    Language {
        /// English.
        #[default]
        English = "en",
        /// German.
        German = "de",
    }
}
