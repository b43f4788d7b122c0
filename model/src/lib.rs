//! The product's words and its ports: what a call record, an event or a permission is, and which stored
//! things the HTTP face may ask for. No I/O, no SIP, no RTP.
