//! Serializes any value into a [`Layout`].
//!
//! The output has the same content as that of `serde_json`. With the serializer of `serde_json` and a formatter
//! for this layout a whole analysis takes more instructions: 21 % more for 200 calls of five seconds, 3 % more
//! for 20 calls of two minutes (callgrind).

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;

use super::layout::Layout;

/// A list or an object under construction.
pub(super) struct Compound<'a> {
    layout: &'a mut Layout,
    is_first: bool,
    /// Whether it is the only value of an object whose key is the name of a variant.
    is_variant: bool,
}

impl<'a> Compound<'a> {
    fn list(layout: &'a mut Layout) -> Self {
        layout.begin_list();
        Compound { layout, is_first: true, is_variant: false }
    }

    fn object(layout: &'a mut Layout) -> Self {
        layout.begin_object();
        Compound { layout, is_first: true, is_variant: false }
    }

    #[inline]
    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.layout.item(std::mem::take(&mut self.is_first));
        value.serialize(&mut *self.layout)?;
        self.layout.end_item();
        Ok(())
    }

    #[inline]
    fn field(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.layout.key(std::mem::take(&mut self.is_first), key);
        value.serialize(&mut *self.layout)?;
        self.layout.end_value();
        Ok(())
    }

    fn end_list(self) {
        self.layout.end_list();
        self.end_variant();
    }

    fn end_object(self) {
        self.layout.end_object();
        self.end_variant();
    }

    fn end_variant(self) {
        if self.is_variant {
            self.layout.end_value();
            self.layout.end_object();
        }
    }
}

/// Begins an object whose one value has the name of a variant.
fn variant(layout: &mut Layout, name: &'static str) {
    layout.begin_object();
    layout.key(true, name);
}

/// Methods that write a whole number.
macro_rules! integers {
    ($($method:ident($type:ty) as $write:ident,)*) => {
        $(#[inline]
        fn $method(self, number: $type) -> Result<(), Error> {
            self.$write(number.into());
            Ok(())
        })*
    };
}

impl<'a> Serializer for &'a mut Layout {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    integers! {
        serialize_i8(i8) as integer,
        serialize_i16(i16) as integer,
        serialize_i32(i32) as integer,
        serialize_i64(i64) as integer,
        serialize_u8(u8) as unsigned,
        serialize_u16(u16) as unsigned,
        serialize_u32(u32) as unsigned,
        serialize_u64(u64) as unsigned,
    }

    fn serialize_bool(self, flag: bool) -> Result<(), Error> {
        self.text.extend_from_slice(if flag { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_f32(self, number: f32) -> Result<(), Error> {
        self.other(&number)
    }

    #[inline]
    fn serialize_f64(self, number: f64) -> Result<(), Error> {
        self.decimal(number)
    }

    fn serialize_char(self, letter: char) -> Result<(), Error> {
        self.text(letter.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, text: &str) -> Result<(), Error> {
        self.text(text)
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Error> {
        self.collect_seq(bytes)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.text.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.name(variant);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        variant(self, name);
        value.serialize(&mut *self)?;
        self.end_value();
        self.end_object();
        Ok(())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Compound<'a>, Error> {
        Ok(Compound::list(self))
    }

    fn serialize_tuple(self, _len: usize) -> Result<Compound<'a>, Error> {
        Ok(Compound::list(self))
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Compound<'a>, Error> {
        Ok(Compound::list(self))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        name: &'static str,
        _len: usize,
    ) -> Result<Compound<'a>, Error> {
        variant(self, name);
        Ok(Compound { is_variant: true, ..Compound::list(self) })
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Compound<'a>, Error> {
        Ok(Compound::object(self))
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Compound<'a>, Error> {
        Ok(Compound::object(self))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        name: &'static str,
        _len: usize,
    ) -> Result<Compound<'a>, Error> {
        variant(self, name);
        Ok(Compound { is_variant: true, ..Compound::object(self) })
    }
}

impl SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.layout.begin_key(std::mem::take(&mut self.is_first));
        let begin = self.layout.text.len();
        key.serialize(&mut *self.layout)?;
        if self.layout.text.get(begin) == Some(&b'"') {
            Ok(())
        } else {
            Err(Error::custom("the key of an object must be a text"))
        }
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.layout.end_key();
        value.serialize(&mut *self.layout)?;
        self.layout.end_value();
        Ok(())
    }

    fn end(self) -> Result<(), Error> {
        self.end_object();
        Ok(())
    }
}

/// The common methods of one kind of compounds.
macro_rules! compound {
    ($($trait:ident: $method:ident($($key:ident)?) as $write:ident, $end:ident;)*) => {
        $(impl $trait for Compound<'_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($key: &'static str,)?
                value: &T,
            ) -> Result<(), Error> {
                self.$write($($key,)? value)
            }

            fn end(self) -> Result<(), Error> {
                self.$end();
                Ok(())
            }
        })*
    };
}

compound! {
    SerializeSeq: serialize_element() as item, end_list;
    SerializeTuple: serialize_element() as item, end_list;
    SerializeTupleStruct: serialize_field() as item, end_list;
    SerializeTupleVariant: serialize_field() as item, end_list;
    SerializeStruct: serialize_field(key) as field, end_object;
    SerializeStructVariant: serialize_field(key) as field, end_object;
}
