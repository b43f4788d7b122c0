//! Conference rooms: as they are managed one by one, as apply files declare them, and as the switch caches them.

mod declare;
mod manage;
mod people;
mod rows;

pub use declare::RoomRow;
pub(super) use rows::rooms;
