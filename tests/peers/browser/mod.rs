//! Headless Chromium with a page that is a phone, `phone.js`: the driver, and its calls.

mod calls;
mod driver;
