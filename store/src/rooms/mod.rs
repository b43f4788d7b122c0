//! Conference rooms: as the API manages them, as apply files declare them, and as the switch caches them.

mod declare;
mod manage;
mod people;
mod rows;

pub use declare::RoomRow;
pub(super) use rows::rooms;
