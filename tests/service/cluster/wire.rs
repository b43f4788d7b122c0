//! A network between a node and a server: up, or partitioned. In a partition connections stay open, and data sent then
//! arrives when it ends.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The connection to a server.
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

    /// Stops all traffic from now on.
    pub fn silence(&self) {
        self.is_whole.send_replace(false);
    }

    pub fn heal(&self) {
        self.is_whole.send_replace(true);
    }
}

async fn connect(near: TcpStream, target: SocketAddr, mut state: watch::Receiver<bool>) {
    // A connection attempt during a partition succeeds when that ends, if the node still waits for it.
    if state.wait_for(|is_whole| *is_whole).await.is_err() {
        return;
    }
    let Ok(far) = TcpStream::connect(target).await else { return };
    let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
    tokio::join!(pass(from_near, to_far, state.clone()), pass(from_far, to_near, state));
}

/// Forwards data until one side ends; then the other side sees that end.
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
