//! Carries a login: PDUs in, PDUs out. What they mean is [`crate::login`]'s.

use super::Session;
use crate::directory::Unit;
use crate::login::{Agreed, Answer, FULL, Failure, Login, Question};
use crate::server::SessionKey;
use crate::text::{MAX_TEXT, Pairs};
use crate::wire::{HEADER, Header, Reply, request, response};
use flow::Inbox;
use units::{Error, Kind, Result};
use world::Buf;

/// Enough for a login, and for small requests later; a busy connection gets more, an idle one has less.
pub(crate) const SMALL_INBOX: usize = 16 << 10;
/// Both sides begin with this limit of the data of one PDU.
const MAX_DATA: usize = 8 << 10;
/// Requests of one login. No initiator needs more than a few.
const MAX_REQUESTS: usize = 64;

/// What begins when a login has ended well.
pub(crate) struct Opened {
    pub agreed: Agreed,
    pub inbox: Inbox,
    pub units: Vec<Unit>,
    pub exp_cmd_sn: u32,
    pub stat_sn: u32,
}

/// The numbers of a login under way.
struct Numbers {
    isid: [u8; 6],
    cid: u16,
    cmd_sn: u32,
    stat_sn: u32,
    /// Given with the last answer.
    tsih: u16,
}

/// `None` when the client was refused, politely, or left.
pub(crate) async fn run(session: &Session) -> Result<Option<Opened>> {
    let mut inbox = Inbox::new(SMALL_INBOX);
    let mut login = Login::new(session.shared.directory(), session.portal.clone(), session.client.clone());
    let mut numbers: Option<Numbers> = None;
    let mut text = Vec::new();
    for _ in 0..MAX_REQUESTS {
        let patience = session.shared.config().silence_timeout;
        let received = world::timeout(patience, receive(session, &mut inbox)).await;
        let Some((header, data)) = received.ok_or_else(|| broken("it says nothing"))?? else {
            return Ok(None);
        };
        if header.opcode() != request::LOGIN {
            return Err(broken("it sent something else before it logged in"));
        }
        let is_first = numbers.is_none();
        let numbers = numbers.get_or_insert_with(|| Numbers {
            isid: isid(&header),
            cid: header.u16(20),
            cmd_sn: header.cmd_sn(),
            stat_sn: header.u32(28),
            tsih: 0,
        });
        if let Err(failure) = check(&header, is_first, numbers, session) {
            refuse(session, &header, numbers, failure).await?;
            return Ok(None);
        }
        text.extend(data);
        if text.len() > MAX_TEXT {
            return Err(broken("it said too much"));
        }
        // C: the text goes on in the next request.
        if header.flags() & 0x40 != 0 {
            let stage = header.flags() & 0x0c;
            respond(session, &header, numbers, stage, &Pairs::default(), Failure(0, 0)).await?;
            continue;
        }
        let answered = match Pairs::decode(&std::mem::take(&mut text)) {
            Some(pairs) => weigh(session, &mut login, &question(&header, pairs)).await,
            None => Err(Failure::INITIATOR),
        };
        let answer = match answered {
            Ok(answer) => answer,
            Err(failure) => {
                refuse(session, &header, numbers, failure).await?;
                return Ok(None);
            }
        };
        if answer.next != Some(FULL) {
            answer_request(session, &header, numbers, &answer).await?;
            continue;
        }
        let agreed = login.agreed();
        let units = match admit(session, &agreed, numbers).await {
            Ok(units) => units,
            Err(failure) => {
                refuse(session, &header, numbers, failure).await?;
                return Ok(None);
            }
        };
        answer_request(session, &header, numbers, &answer).await?;
        let (exp_cmd_sn, stat_sn) = (numbers.cmd_sn, numbers.stat_sn);
        return Ok(Some(Opened { agreed, inbox, units, exp_cmd_sn, stat_sn }));
    }
    Err(broken("it never came to an end"))
}

/// Answers a question; one that shows a proof when its turn has come ([`crate::guesses`]).
async fn weigh(
    session: &Session,
    login: &mut Login<'_>,
    question: &Question,
) -> std::result::Result<Answer, Failure> {
    if !login.shows_proof(question) {
        return login.answer(question);
    }
    let shared = &session.shared;
    let name = login.asking().initiator.clone();
    let taken = shared.guesses().take(&name, &session.client, world::now());
    let taken = taken.ok_or(Failure::RESOURCES)?;
    if !taken.wait.is_zero() {
        world::sleep(taken.wait).await;
    }
    let answer = login.answer(question);
    match answer {
        Err(Failure::AUTHENTICATION) => {
            let wrong = shared.guesses().wrong(&taken);
            shared.directory().note_wrong_proof(login.asking(), wrong);
        }
        _ => shared.guesses().right(&name, &session.client, taken),
    }
    answer
}

fn broken(why: &str) -> Error {
    Error::invalid(format!("log in iSCSI client: {why}"))
}

fn isid(header: &Header) -> [u8; 6] {
    let mut isid = [0; 6];
    isid.copy_from_slice(&header.0[8..14]);
    isid
}

async fn receive(session: &Session, inbox: &mut Inbox) -> Result<Option<(Header, Vec<u8>)>> {
    let stream = &*session.stream;
    if !inbox.fill(stream, HEADER).await? {
        return Ok(None);
    }
    let mut header = Header([0; HEADER]);
    inbox.take(&mut header.0);
    let len = header.data();
    if len > MAX_DATA {
        return Err(broken("its request is too long"));
    }
    let whole = header.additional() + len.next_multiple_of(4);
    if !inbox.fill(stream, whole).await? {
        return Ok(None);
    }
    inbox.consume(header.additional());
    let mut data = vec![0; len];
    inbox.take(&mut data);
    inbox.consume(whole - header.additional() - len);
    session.vitals.note_brought(whole);
    Ok(Some((header, data)))
}

fn check(
    header: &Header,
    is_first: bool,
    numbers: &Numbers,
    session: &Session,
) -> std::result::Result<(), Failure> {
    if header.0[3] > 0 {
        return Err(Failure::VERSION);
    }
    // T and C exclude each other.
    if header.flags() & 0xc0 == 0xc0 {
        return Err(Failure::INITIATOR);
    }
    let same =
        isid(header) == numbers.isid && header.u16(20) == numbers.cid && header.cmd_sn() == numbers.cmd_sn;
    if !is_first && !same {
        return Err(Failure::INITIATOR);
    }
    match header.u16(14) {
        0 => Ok(()),
        // A session has one connection.
        tsih if session.shared.has_session(tsih) => Err(Failure::TOO_MANY),
        _ => Err(Failure::NO_SESSION),
    }
}

fn question(header: &Header, pairs: Pairs) -> Question {
    let flags = header.flags();
    let next = (flags & 0x80 != 0).then_some(flags & 3);
    Question { stage: flags >> 2 & 3, next, pairs }
}

/// Ends an older session of the same client, and finds the units of the new one.
async fn admit(
    session: &Session,
    agreed: &Agreed,
    numbers: &mut Numbers,
) -> std::result::Result<Vec<Unit>, Failure> {
    let target = agreed.target.as_ref().map(|(name, welcome)| (name.clone(), welcome.tag));
    let key = SessionKey { initiator: agreed.asking.initiator.clone(), isid: numbers.isid, target };
    numbers.tsih = session.shared.claim(session.id, key).await.ok_or(Failure::RESOURCES)?;
    match &agreed.target {
        Some((name, _)) => {
            let units = session.shared.directory().units(&agreed.asking, name).await;
            units.map_err(|_| Failure::UNAVAILABLE)
        }
        None => Ok(Vec::new()),
    }
}

async fn answer_request(
    session: &Session,
    header: &Header,
    numbers: &mut Numbers,
    answer: &Answer,
) -> Result<()> {
    let stage = header.flags() & 0x0c;
    let flags = stage | answer.next.map_or(0, |next| 0x80 | next);
    respond(session, header, numbers, flags, &answer.pairs, Failure(0, 0)).await
}

async fn refuse(session: &Session, header: &Header, numbers: &mut Numbers, failure: Failure) -> Result<()> {
    respond(session, header, numbers, header.flags() & 0x0c, &Pairs::default(), failure).await
}

async fn respond(
    session: &Session,
    header: &Header,
    numbers: &mut Numbers,
    flags: u8,
    pairs: &Pairs,
    status: Failure,
) -> Result<()> {
    let mut text = pairs.encode();
    let reply = Reply::to(response::LOGIN, flags, header.tag())
        .data(text.len())
        .bytes(8, &numbers.isid)
        .u16(14, numbers.tsih)
        .u32(24, numbers.stat_sn)
        .u32(28, numbers.cmd_sn)
        .u32(32, numbers.cmd_sn.wrapping_add(session.shared.config().session_commands as u32 - 1))
        .u8(36, status.0)
        .u8(37, status.1);
    numbers.stat_sn = numbers.stat_sn.wrapping_add(1);
    text.resize(text.len().next_multiple_of(4), 0);
    let bytes = [&reply.0[..], &text].concat();
    let sent = session.stream.send(vec![Buf::copy_from(&bytes)]).await;
    sent.map_err(|e| Error::new(Kind::Io, "send to iSCSI client").because(e))
}
