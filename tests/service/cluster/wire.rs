//! A network between a node and a server: whole, or silent, as a partition is: connections stay open, and what was sent
//! arrives when it is over.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The way to a server.
pub struct Wire {
    pub address: SocketAddr,
    is_whole: watch::Sender<bool>,
}

impl Wire {
    pub async fn to(target: SocketAddr) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_whole, state) = watch::channel(true);
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                tokio::spawn(connect(near, target, state.clone()));
            }
        });
        Wire { address, is_whole }
    }

    /// Nothing passes from now on.
    pub fn silence(&self) {
        self.is_whole.send_replace(false);
    }

    pub fn heal(&self) {
        self.is_whole.send_replace(true);
    }
}

async fn connect(near: TcpStream, target: SocketAddr, mut state: watch::Receiver<bool>) {
    // A connection that begins in the silence is established when that is over, if the node still waits for it.
    if state.wait_for(|is_whole| *is_whole).await.is_err() {
        return;
    }
    let Ok(far) = TcpStream::connect(target).await else { return };
    let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
    tokio::join!(pass(from_near, to_far, state.clone()), pass(from_far, to_near, state));
}

/// Passes what comes, until one side ends; then the other side sees that end.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<bool>) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut bytes).await;
        if state.wait_for(|is_whole| *is_whole).await.is_err() {
            return;
        }
        match read {
            Ok(len @ 1..) if to.write_all(&bytes[..len]).await.is_ok() => {}
            // Dropping `to` ends the other direction's reader as well.
            _ => return,
        }
    }
}
