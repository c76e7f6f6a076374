//! `cat`: the bytes of files, one after the other. What is missing is zeros, so that the rest stays where it was.

use crate::salvage::{Part, read};
use crate::session::Session;
use units::{Kind, Result};
use zpl::FileKind;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

pub async fn run(session: &mut Session, places: &[String]) -> Result<()> {
    for place in places {
        let node = match session.find(place, true).await {
            Ok(node) if node.kind() == FileKind::Regular => node,
            Ok(_) => {
                session.output.complain(format!("cannot read '{place}': it is no file with data"));
                continue;
            }
            Err(e) => {
                session.output.complain(format!("cannot read '{place}': {e}"));
                continue;
            }
        };
        let size = node.stat().await?.size;
        let mut out = std::mem::replace(&mut session.output.out, Box::new(std::io::sink()));
        let done = read(session, &node, 0..size, place, |_, part| match part {
            Part::Data(bytes) => out.write_all(bytes).map_err(cannot),
            Part::Hole(len) | Part::Missing(len) => zeros(&mut *out, len).map_err(cannot),
        })
        .await;
        session.output.out = out;
        done?;
    }
    session.output.out.flush().map_err(cannot)
}

pub fn zeros(out: &mut dyn std::io::Write, len: u64) -> std::io::Result<()> {
    let mut left = len;
    while left > 0 {
        let n = left.min(ZEROS.len() as u64);
        out.write_all(&ZEROS[..n as usize])?;
        left -= n;
    }
    Ok(())
}

pub fn cannot(e: std::io::Error) -> units::Error {
    let kind = if e.kind() == std::io::ErrorKind::BrokenPipe { Kind::Cancelled } else { Kind::Io };
    units::Error::new(kind, "write output").because(e)
}
