//! Unit attentions: what a client must be told before its next command is carried out.

use crate::sense::{Sense, SenseKey};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attention {
    /// The first command since the unit came up, or since this path was lost and found.
    PowerOn,
    NexusLost,
    /// The unit was reset.
    Reset,
    ModeChanged,
    CapacityChanged,
    InquiryChanged,
    LunsChanged,
    PortsChanged,
    ReservationsPreempted,
    ReservationsReleased,
    RegistrationsPreempted,
    /// Commands were cleared by another initiator.
    CommandsCleared,
}

impl Attention {
    pub fn sense(self) -> Sense {
        let (asc, ascq) = match self {
            Attention::PowerOn => (0x29, 0x00),
            Attention::Reset => (0x29, 0x03),
            Attention::NexusLost => (0x29, 0x07),
            Attention::ModeChanged => (0x2a, 0x01),
            Attention::ReservationsPreempted => (0x2a, 0x03),
            Attention::ReservationsReleased => (0x2a, 0x04),
            Attention::RegistrationsPreempted => (0x2a, 0x05),
            Attention::PortsChanged => (0x2a, 0x06),
            Attention::CapacityChanged => (0x2a, 0x09),
            Attention::CommandsCleared => (0x2f, 0x00),
            Attention::InquiryChanged => (0x3f, 0x03),
            Attention::LunsChanged => (0x3f, 0x0e),
        };
        Sense::new(SenseKey::UnitAttention, asc, ascq)
    }
}

/// What one path has still to be told, each thing once, the gravest first.
#[derive(Debug, Default)]
pub(crate) struct Attentions(Vec<Attention>);

impl Attentions {
    pub fn raise(&mut self, attention: Attention) {
        // An initiator that will hear of a reset need not hear of what it did.
        let covered = self.0.first() == Some(&Attention::PowerOn) && attention <= Attention::Reset;
        if let (false, Err(at)) = (covered, self.0.binary_search(&attention)) {
            self.0.insert(at, attention);
        }
    }

    pub fn take(&mut self) -> Option<Attention> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    pub fn forget(&mut self, attention: Attention) {
        self.0.retain(|&a| a != attention);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attention_is_told_once_and_the_gravest_first() {
        let mut waiting = Attentions::default();
        for attention in
            [Attention::LunsChanged, Attention::PowerOn, Attention::Reset, Attention::LunsChanged]
        {
            waiting.raise(attention);
        }
        assert_eq!(waiting.take(), Some(Attention::PowerOn));
        assert_eq!(waiting.take(), Some(Attention::LunsChanged));
        assert!(waiting.is_empty() && waiting.take().is_none());
    }
}
